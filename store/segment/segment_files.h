// The names of segment files: STORE/segments/<id / 1024>/<id>.seg, with 6 hex digits for the
// directory and 8 for the file. Only the functions of this file make and parse these names. A
// directory holds at most 1,024 segments (32 GiB).
//
// Thread-safety: any function from any thread. Errors: Env's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_listing.h"

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

// Makes a new file for the replacement of a segment. First removes such a file that a crash has
// left, and creates the directory if it does not exist. The new file's name is not durable.
Result<std::unique_ptr<File>> CreateTemporarySegment(Env& env, const std::string& store,
                                                     SegmentId id);

// Lists the segments of a store. kNotFound if STORE/segments does not exist.
Result<SegmentListing> ListSegments(Env& env, const std::string& store);

// Removes a segment's file; durable on return. kNotFound if the segment does not exist.
Status RemoveSegment(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
