// The names of segment files: STORE/segments/<id / 1024>/<id>.seg, with 6 hex digits for the
// directory and 8 for the file. Only the functions of this file make and parse these names. A
// directory holds at most 1,024 segments (32 GiB).
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
// The path of a replacement beside the segment's file, until the replacement is finished and
// renamed.
std::string TemporarySegmentPath(const std::string& store, SegmentId id);

// The segment id in a file name (without directory); empty unless SegmentPath makes names of
// exactly this form.
std::optional<SegmentId> ParseSegmentFileName(std::string_view name);

// Creates STORE/segments durably; an existing one is only synced.
Status CreateSegmentsDirectory(Env& env, const std::string& store);
// Creates the directory of segment `id` durably; an existing one is only synced.
Status CreateSegmentDirectory(Env& env, const std::string& store, SegmentId id);

struct SegmentListing {
  std::vector<SegmentId> ids;            // ascending
  std::vector<std::string> directories;  // paths of directories for segments, even if empty
  // Replacements left over from a crash (paths of the form of TemporarySegmentPath); not needed.
  std::vector<std::string> temporaries;
  std::vector<std::string> strays;  // paths of all entries not made by siltfs; they are left alone
  // Paths of symbolic links in place of segments or their directories. They may lead to segments,
  // and are not in `strays`.
  std::vector<std::string> links;
};

// Lists the segments of a store. kNotFound if STORE/segments does not exist.
Result<SegmentListing> ListSegments(Env& env, const std::string& store);

// Removes a segment's file; durable on return. kNotFound if the segment does not exist.
Status RemoveSegment(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
