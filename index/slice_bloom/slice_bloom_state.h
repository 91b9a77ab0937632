// The records of the manifest of a SliceBloom (index/flash/state_map.h): a header, groups,
// partitions, the present group if it was saved, and files. Format: docs/format.md, "SliceBloom".
//
// Functions and plain values only. kCorruption for invalid records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "index/flash/page_files.h"
#include "index/flash/state_map.h"
#include "index/slice_bloom/slice_bloom.h"
#include "index/slice_bloom/slice_bloom_lookup.h"

namespace siltfs {

struct SliceBloomHeader {
  SliceBloomShape shape;
  uint64_t secret = 0;
  uint64_t groups = 0;  // that have ended

  // The Bloom filter of a group in one partition.
  BloomShape FilterShape() const;
};

struct SliceBloomGroup {
  struct Member {
    SegmentId segment = 0;
    uint32_t names = 0;
  };
  std::vector<Member> members;
  uint64_t names = 0;  // that were added; those of members and of segments that have left

  uint64_t MemberNames() const;
};

// The present group as Close has saved it.
struct SavedGroup {
  SliceBloomGroup group;
  PageAddress first;  // of the pages with its filters
};

struct SliceBloomState {
  SliceBloomHeader header;
  std::vector<SliceFilters> partitions;
  std::vector<SliceBloomGroup> groups;
  std::optional<SavedGroup> saved;
};

inline constexpr uint64_t kSliceBloomHeaderRecord = 0;
inline constexpr uint64_t kSavedGroupRecord = 1;
inline uint64_t GroupRecordOf(uint64_t group) { return uint64_t{1} << 61 | group; }
inline uint64_t FiltersRecordOf(uint64_t partition) { return uint64_t{1} << 62 | partition; }
inline uint64_t SliceBloomFileRecordOf(uint64_t id) { return uint64_t{1} << 63 | id; }

// kInvalidArgument, with one sentence, if a shape is out of range.
Status CheckSliceBloomShape(const SliceBloomShape& shape);

std::string EncodeSliceBloomHeader(const SliceBloomHeader& header);
std::string EncodeGroup(const SliceBloomGroup& group);
std::string EncodeSavedGroup(const SavedGroup& saved);
std::string EncodeSliceFilters(const SliceFilters& filters);

// Decodes all records. Enters the files into `files`.
Result<SliceBloomState> DecodeSliceBloomState(const StateMap::Records& records, PageFiles& files);

}  // namespace siltfs
