// The session "snapshot diff" (protocol.h), and its messages.
//
// The client sends {"from":NAME,"to":NAME} in one line; without "to" the present state is compared.
// The daemon sends lines with arrays of changes:
//
//   {"change":"created","path":HEX,"old_path":HEX,"type":N,"content":B,"metadata":B}
//
// "change" is "created", "changed", "renamed" or "deleted". Paths are in hexadecimal, because their
// bytes need not be UTF-8. An empty array says that the comparison goes on. After the last array
// the result is {"changes":N}. A client that leaves ends the comparison.
//
// Thread-safety: pure functions, and every call from any thread. Errors: those of Snapshots::Diff;
// kInvalidArgument for lines that are no such messages.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "fs/interface/snapshots.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

inline constexpr const char* kDiffSession = "snapshot diff";
inline constexpr uint64_t kDiffVersion = 1;
inline constexpr size_t kMaxDiffRequestBytes = 4096;

struct WantedDiff {
  std::string from;
  std::optional<std::string> to;
  bool operator==(const WantedDiff&) const = default;
};

// Lines without the newline.
std::string EncodeWantedDiff(const WantedDiff& wanted);  // the names must be UTF-8
Result<WantedDiff> DecodeWantedDiff(std::string_view line);
std::string EncodePathChanges(const std::vector<PathChange>& changes);
// nullopt for a line that is no array, so the result.
Result<std::optional<std::vector<PathChange>>> DecodePathChanges(std::string_view line);

// The word for the kind of change, in messages and in output.
std::string_view NameOf(ChangeKind kind);

Result<nlohmann::json> ServeDiff(FileSystem& file_system, LocalStream& stream,
                                 const std::function<bool()>& stopped);
// The client's side, after the greeting. Returns the result.
Result<nlohmann::json> ReceiveDiff(LocalStream& stream, const WantedDiff& wanted,
                                   const std::function<Status(const PathChange&)>& visit);

}  // namespace siltfs
