// The token by which a one-way transfer goes on: which snapshot was being received, with which
// base, and where the sender shall go on.
//
// Thread-safety: pure functions. Errors: kInvalidArgument for a text that is no token.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fs/records/snapshot_id.h"
#include "store/base/result.h"

namespace siltfs {

struct ResumeToken {
  SnapshotId snapshot;
  std::optional<SnapshotId> base = {};
  std::string position;

  bool operator==(const ResumeToken&) const = default;

  std::string ToText() const;
  static Result<ResumeToken> FromText(std::string_view text);
};

}  // namespace siltfs
