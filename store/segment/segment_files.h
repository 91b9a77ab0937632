// The names of segment files, which only this file makes and parses: STORE/segments/<id /
// 1024>/<id>.seg, the directory in 6 hex digits, the file in 8. Directories hold at most 1,024
// segments (32 GiB) each.
//
// Thread-safety: any function from any thread. Errors: Env's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

std::string SegmentsDirectory(const std::string& store);
std::string SegmentDirectory(const std::string& store, SegmentId id);
std::string SegmentPath(const std::string& store, SegmentId id);
// The path of an unfinished replacement, beside the segment's file, until it is renamed.
std::string TemporarySegmentPath(const std::string& store, SegmentId id);

// The id in a file name (without directory) of exactly the form that SegmentPath makes.
std::optional<SegmentId> ParseSegmentFileName(std::string_view name);

// Creates STORE/segments durably; an existing one is only synced.
Status CreateSegmentsDirectory(Env& env, const std::string& store);
// Creates the directory of segment `id` durably; an existing one is only synced.
Status CreateSegmentDirectory(Env& env, const std::string& store, SegmentId id);

struct SegmentListing {
  std::vector<SegmentId> ids;            // ascending
  std::vector<std::string> directories;  // paths of directories for segments, even if empty
  // Paths of the form of TemporarySegmentPath: left over from a crash, not needed.
  std::vector<std::string> temporaries;
  std::vector<std::string> strays;  // paths of all entries not made by siltfs; they are left alone
  // Paths of symbolic links in place of segments or their directories, which may lead to segments;
  // not in `strays`.
  std::vector<std::string> links;
};

// kNotFound if STORE/segments does not exist.
Result<SegmentListing> ListSegments(Env& env, const std::string& store);

// Durable on return. kNotFound if the segment does not exist.
Status RemoveSegment(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
