// A local file with the whole content of a sealed segment, for SegmentStore::Put and Replace.
//
// A plain value: it opens nothing. `env` must outlive it. Thread-safety: any thread.
#pragma once

#include <memory>
#include <string>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct SegmentSource {
  Env& env;
  std::string path;

  Result<std::unique_ptr<File>> Open() const;
  // The whole content. kFileTooLarge if no segment can be that large.
  Result<std::string> Read() const;
  // Removes the file; durable on return.
  Status Remove() const;
};

// The segment's file in the store's directory, in which the segment was built (SegmentWriter).
SegmentSource BuiltSegment(Env& env, const std::string& store, SegmentId id);
// The file beside the segment's file, in which a replacement of the segment was built
// (segment_rewrite.h, segment_repair.h, segment_salvage.h).
SegmentSource BuiltReplacement(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
