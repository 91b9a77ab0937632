#include "index/slice_hash/slice_placement.h"

#include <algorithm>

namespace siltfs {

void SlicePlacement::Add(const FlashEntry& entry) {
  entries_.push_back(entry);
  is_second_.push_back(0);
}

bool SlicePlacement::Place(uint32_t slots) {
  if (entries_.size() > uint64_t{slots} * shape_.buckets) return false;
  for (std::vector<uint32_t>& members : members_) members.clear();
  std::ranges::fill(is_second_, 0);
  for (uint32_t entry = 0; entry < entries_.size(); ++entry) {
    members_[BucketOf(entry, false)].push_back(entry);
  }
  reached_.assign(shape_.buckets, {});
  search_ = 0;
  for (uint32_t bucket = 0; bucket < shape_.buckets; ++bucket) {
    while (members_[bucket].size() > slots) {
      if (!MoveOneFrom(bucket, slots)) return false;
    }
  }
  return true;
}

// Searches breadth-first. A move never leaves a bucket with more entries than before, except the
// last bucket, which had room.
bool SlicePlacement::MoveOneFrom(uint32_t bucket, uint32_t slots) {
  ++search_;
  reached_[bucket].search = search_;
  waiting_.assign(1, bucket);
  for (size_t next = 0; next < waiting_.size(); ++next) {
    const uint32_t here = waiting_[next];
    for (const uint32_t entry : members_[here]) {
      const uint32_t other = BucketOf(entry, is_second_[entry] == 0);
      if (reached_[other].search == search_) continue;
      reached_[other] = {.entry = entry, .from = here, .search = search_};
      if (members_[other].size() >= slots) {
        waiting_.push_back(other);
        continue;
      }
      for (uint32_t to = other; to != bucket; to = reached_[to].from) {
        Move(reached_[to].entry, reached_[to].from);
      }
      return true;
    }
  }
  return false;
}

void SlicePlacement::Move(uint32_t entry, uint32_t from) {
  std::vector<uint32_t>& members = members_[from];
  *std::ranges::find(members, entry) = members.back();
  members.pop_back();
  is_second_[entry] ^= 1;
  members_[BucketOf(entry, is_second_[entry] != 0)].push_back(entry);
}

}  // namespace siltfs
