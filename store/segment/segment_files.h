// The names of segment files, made and parsed here and nowhere else: STORE/segments/<id /
// 1024>/<id>.seg, the directory in 6 hex digits, the file in 8. Directories hold at most 1,024
// segments (32 GiB) each.
//
// Thread-safety: all may be called from any thread. Errors: Env's.
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
// Beside the segment's file; where a replacement grows until it is renamed.
std::string TemporarySegmentPath(const std::string& store, SegmentId id);

// The id in a file's name (no directory) if it is exactly what SegmentPath would call it.
std::optional<SegmentId> ParseSegmentFileName(std::string_view name);

// Makes STORE/segments, durably. Does nothing if it is there.
Status CreateSegmentsDirectory(Env& env, const std::string& store);
// Makes the directory that holds `id`, durably. Does nothing if it is there.
Status CreateSegmentDirectory(Env& env, const std::string& store, SegmentId id);

struct SegmentListing {
  std::vector<SegmentId> ids;            // ascending
  std::vector<std::string> directories;  // paths of those that hold segments, or may
  std::vector<std::string>
      temporaries;  // paths of TemporarySegmentPath's form: left by a crash, of no use to anyone
  std::vector<std::string> strays;  // paths of all that no siltfs has put there; left alone
  // Paths of symbolic links in the places of segments and their directories, which may lead to
  // some; not among the strays.
  std::vector<std::string> links;
};

// kNotFound if there is no STORE/segments.
Result<SegmentListing> ListSegments(Env& env, const std::string& store);

// Durable on return. kNotFound if it is not there.
Status RemoveSegment(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
