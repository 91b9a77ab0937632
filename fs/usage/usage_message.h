// The messages of `siltfs du` and `siltfs find-duplicates`. They follow the greeting of the session
// "usage" (fs/control/protocol.h), each in one line.
//
// The client sends {"paths":[{"directory":N,"name":"HEX"},...],"depth":N} to measure the paths, or
// {"paths":[...],"min_size":N,"limit":N,"partial":B} to find duplicates there. The inode numbers
// are those that it has read from the mount; the name's bytes are in hexadecimal, and an empty name
// stands for the directory itself. The daemon sends {"step":N,"done":N,"total":N} now and then. If
// the client ends its side of the stream before the result has come, the work is stopped. Then the
// daemon sends the entries, or the groups of duplicates and the pairs, as arrays, in lines of
// limited size. The result follows:
//
//   entry        {"path":N,"below":"HEX"} and the space
//   group        {"size","copies","saved_bytes","files":[{"path":N,"below":"HEX"},...]}
//   pair         {"first":{"path":N,"below":"HEX"},"second":{...},"first_size","second_size",
//                "shared_bytes"}
//   the space    {"files","directories","logical_bytes","exclusive_bytes","shared_bytes",
//                "snapshot_bytes","recipe_bytes","pending_bytes"}
//   result       the space of all paths, and {"shared_among_bytes","left_out","stored_ratio"}; or
//                {"files","files_busy","groups_found","copies_found","saved_bytes","left_out"}
//
// "stored_ratio" is the number of bytes in segments for each uncompressed byte, in the whole store.
//
// Thread-safety: pure functions. Errors: kInvalidArgument for a line that is not such a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/interface/space_usage.h"
#include "store/base/result.h"

namespace siltfs::usage {

inline constexpr const char* kSession = "usage";
inline constexpr uint64_t kVersion = 1;
inline constexpr size_t kMaxRequestBytes = 4u << 20;
inline constexpr size_t kMostGroups = 10'000;

// A measurement or a search, whose scopes have only paths.
using Wanted = std::variant<UsageRequest, DuplicateRequest>;

std::string EncodeWanted(const Wanted& wanted);  // with the newline, as all lines
Result<Wanted> DecodeWanted(std::string_view line);

std::string EncodeProgress(const UsageProgress& progress);
// nullopt for a line that is no progress.
std::optional<UsageProgress> DecodeProgress(std::string_view line);

std::string EncodeEntries(const std::vector<UsageEntry>& entries);
std::string EncodeGroups(const std::vector<DuplicateGroup>& groups);
std::string EncodePairs(const std::vector<PartlySharedPair>& pairs);
// nullopt for a line that is no array, so probably the result.
Result<std::optional<std::vector<UsageEntry>>> DecodeEntries(std::string_view line);
using Duplicate = std::variant<DuplicateGroup, PartlySharedPair>;
Result<std::optional<std::vector<Duplicate>>> DecodeDuplicates(std::string_view line);

nlohmann::json ToJson(const SpaceUsage& usage);
// The results, without the entries and the groups.
nlohmann::json ToJson(const UsageReport& report);
nlohmann::json ToJson(const DuplicateReport& report);

}  // namespace siltfs::usage
