// The keys that this program gives to objects. They contain only characters that no service and no
// tool encodes or treats specially. If "a" is the key of an object, "a/b" must not be one: MinIO
// stores both, but does not list the second.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace siltfs {

inline constexpr size_t kMaxObjectKeyBytes = 512;

// Whether the key consists of parts that are separated by "/", of letters, digits, ".", "_" and
// "-"; no part is empty, "." or "..".
bool IsObjectKey(std::string_view key);

}  // namespace siltfs
