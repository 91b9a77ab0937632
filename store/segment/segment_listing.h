// The result of listing the segments of a store.
#pragma once

#include <string>
#include <vector>

#include "store/base/location.h"

namespace siltfs {

struct SegmentListing {
  std::vector<SegmentId> ids;  // ascending
  // Names of the directories, or other containers, for segments, including those without segments.
  // If this list is empty, the place is as if no segment had ever been stored in it.
  std::vector<std::string> directories;
  // Names of unfinished replacements that a crash has left. They are not needed.
  std::vector<std::string> temporaries;
  // Names of all other entries. siltfs did not make them, and leaves them alone.
  std::vector<std::string> strays;
  // Names of symbolic links in place of segments or their directories. They may lead to segments,
  // and are not in `strays`.
  std::vector<std::string> links;
};

}  // namespace siltfs
