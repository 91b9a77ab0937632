#include "index/silt/trie_buckets.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace siltfs {
namespace {

constexpr uint64_t kMaxDistance = std::numeric_limits<uint16_t>::max();

Status Corrupt(const char* cause) { return {StatusCode::kCorruption, cause}; }

}  // namespace

size_t TrieBuckets::memory_bytes() const {
  return groups_.capacity() * sizeof(Group) + starts_.capacity() * sizeof(Distance) +
         wide_.capacity() * sizeof(Start);
}

// Moves the starts of the last group to wide_, where they are full values instead of distances.
// `first` is the index of the group's first start in starts_.
void TrieBuckets::Widen(Group& group, size_t first) {
  const size_t place = wide_.size();
  for (size_t i = first; i < starts_.size(); ++i) {
    wide_.push_back({.rank = group.rank + starts_[i].rank, .bit = group.bit + starts_[i].bit});
    starts_[i] = {.rank = 0, .bit = 0};
  }
  group = {.rank = 0, .bit = kWide | place};
}

void TrieBuckets::Append(Start start) {
  const size_t in_group = starts_.size() % kGroup;
  if (in_group == 0) groups_.push_back({.rank = start.rank, .bit = start.bit});
  Group& group = groups_.back();
  if ((group.bit & kWide) == 0 &&
      (start.rank - group.rank > kMaxDistance || start.bit - group.bit > kMaxDistance)) {
    Widen(group, starts_.size() - in_group);
  }
  if ((group.bit & kWide) != 0) {
    wide_.push_back(start);
    starts_.push_back({.rank = 0, .bit = 0});
    return;
  }
  starts_.push_back({.rank = static_cast<uint16_t>(start.rank - group.rank),
                     .bit = static_cast<uint16_t>(start.bit - group.bit)});
}

void TrieBuckets::ShrinkToFit() {
  groups_.shrink_to_fit();
  starts_.shrink_to_fit();
  wide_.shrink_to_fit();
}

// Encodes group by group, so that decoding needs no memory beyond the result.
void TrieBuckets::Encode(Encoder& out) const {
  for (size_t first = 0; first < starts_.size(); first += kGroup) {
    const Group& group = groups_[first / kGroup];
    const size_t end = std::min(first + kGroup, starts_.size());
    const bool wide = (group.bit & kWide) != 0;
    const Start base = At(first);
    out.U64(base.bit | (wide ? kWide : 0)).U32(base.rank);
    for (size_t i = first; i < end; ++i) {
      if (wide) {
        out.U32(At(i).rank).U64(At(i).bit);
      } else {
        out.U16(starts_[i].rank).U16(starts_[i].bit);
      }
    }
  }
}

Result<TrieBuckets> TrieBuckets::Decode(Decoder& in, uint64_t count, Start end) {
  if (count > in.remaining() / sizeof(Distance)) return Corrupt("trie: buckets missing");
  TrieBuckets buckets;
  buckets.starts_.reserve(count);
  buckets.groups_.reserve((count + kGroup - 1) / kGroup);
  Start last;
  for (uint64_t first = 0; first < count; first += kGroup) {
    const uint64_t coded_bit = in.U64();
    const bool wide = (coded_bit & kWide) != 0;
    const Start base{.rank = in.U32(), .bit = coded_bit & ~kWide};
    for (uint64_t i = first; i < std::min<uint64_t>(first + kGroup, count); ++i) {
      uint64_t rank = in.U16();
      uint64_t bit = 0;
      if (wide) {
        rank |= uint64_t{in.U16()} << 16;
        bit = in.U64();
      } else {
        rank += base.rank;
        bit = base.bit + in.U16();
      }
      if (rank < last.rank || bit < last.bit || rank > end.rank || bit > end.bit) {
        return Corrupt("trie: a bucket begins before the one before it");
      }
      last = {.rank = static_cast<uint32_t>(rank), .bit = bit};
      if (i == 0 && last != Start{}) return Corrupt("trie: the first bucket does not begin at 0");
      if (i == first && last != base) return Corrupt("trie: a group of buckets begins elsewhere");
      buckets.Append(last);
    }
    if (!in.ok()) return Corrupt("trie: buckets missing");
    if (((buckets.groups_.back().bit & kWide) != 0) != wide) {
      return Corrupt("trie: a group of buckets is coded the other way");
    }
  }
  if (last != end) return Corrupt("trie: the buckets end elsewhere");
  buckets.ShrinkToFit();
  return buckets;
}

}  // namespace siltfs
