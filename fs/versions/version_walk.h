// Visits the values of versions, for checks and marks.
//
// Thread-safety: one thread. Errors: those of the key-value store and of `visit`; kCorruption for a
// malformed key or value, unless these are skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_key.h"

namespace siltfs {

// A mark must not miss a reference, so it fails at a malformed version. A check reports malformed
// versions elsewhere, and skips them.
enum class MalformedVersions : uint8_t { kFail, kSkip };

// Visits the versions of the keys in [begin, end) that have a value, by key, the newest version
// first.
Status ForEachVersion(
    const KvSnapshot& metadata, std::string_view begin, std::string_view end,
    const std::function<Status(const VersionKeyParts& version, std::string_view value)>& visit,
    MalformedVersions malformed = MalformedVersions::kFail);

}  // namespace siltfs
