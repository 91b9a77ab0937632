// The messages of `siltfs clone`. They follow the greeting of the session "clone" (protocol.h),
// each in one line.
//
// The client sends {"source":N,"parent":N,"name":"HEX"}: two inode numbers, which it has read from
// the mount, and the name's bytes in hexadecimal. The daemon sends {"files":N,"directories":N} now
// and then. If the client ends its side of the stream before the result has come, the clone is
// stopped. The result, which is sent in any case, has the keys "files", "directories" and
// "logical_bytes".
//
// Thread-safety: pure functions. Errors: kInvalidArgument for a line that is not such a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fs/interface/entry_store.h"
#include "store/base/result.h"

namespace siltfs::clone {

inline constexpr uint64_t kVersion = 1;
inline constexpr size_t kMaxLineBytes = 4096;

struct Wanted {
  InodeNumber source = 0;
  InodeNumber parent = 0;
  std::string name;
  bool operator==(const Wanted&) const = default;
};

std::string EncodeWanted(const Wanted& wanted);  // with the newline
Result<Wanted> DecodeWanted(std::string_view line);

std::string EncodeProgress(const CloneTotals& totals);  // with the newline
// nullopt for a line that is no progress, so probably the result.
std::optional<CloneTotals> DecodeProgress(std::string_view line);

nlohmann::json ToJson(const CloneTotals& totals);

}  // namespace siltfs::clone
