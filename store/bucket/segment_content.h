// A content of a segment. Replace gives a segment a new content, so a segment can have several
// contents in the bucket and on the local disk, each under a name of its own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "store/base/location.h"

namespace siltfs {

// Generations are unique in a store and ascend: a content that is put later has a higher one. The
// upper 32 bits are the epoch of the writer (bucket_options.h), the lower ones count its contents.
inline constexpr unsigned kEpochShift = 32;

struct ContentId {
  SegmentId segment = kNoSegment;
  uint64_t generation = 0;

  // Of the writer that has put the content.
  uint32_t epoch() const { return static_cast<uint32_t>(generation >> kEpochShift); }

  auto operator<=>(const ContentId&) const = default;
};

struct SegmentContent {
  ContentId id;
  uint32_t size = 0;  // bytes of the segment

  bool operator==(const SegmentContent&) const = default;
};

}  // namespace siltfs

template <>
struct std::hash<siltfs::ContentId> {
  size_t operator()(const siltfs::ContentId& id) const {
    // The generation alone is unique; the multiplication spreads consecutive ones.
    return static_cast<size_t>(id.generation * 0x9e3779b97f4a7c15 ^ id.segment);
  }
};
