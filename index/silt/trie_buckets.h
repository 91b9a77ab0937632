// The start of each bucket of a trie index: the rank of its first key, and the first bit of its
// trie. There are two levels, like in the paper's semi-direct-16: a group of 32 buckets stores one
// start in full, and each bucket stores two 16-bit distances from it. If keys are not hashes, the
// distances in a group may be too large for 16 bits. Then the group stores all its starts in full.
//
// Thread-safety: const calls may run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs {

class TrieBuckets {
 public:
  static constexpr size_t kGroup = 32;

  struct Start {
    uint32_t rank = 0;
    uint64_t bit = 0;
    friend bool operator==(const Start&, const Start&) = default;
  };

  // Number of starts: one more than buckets, because the last is the end of the last bucket.
  size_t size() const { return starts_.size(); }
  size_t memory_bytes() const;

  // i < size().
  Start At(size_t i) const {
    const Group& group = groups_[i / kGroup];
    if ((group.bit & kWide) != 0) return wide_[(group.bit & ~kWide) + i % kGroup];
    return {.rank = group.rank + starts_[i].rank, .bit = group.bit + starts_[i].bit};
  }

  // Appends a start. Its rank and bit must not be below those of the previous start. bit < 2^63.
  void Append(Start start);
  void ShrinkToFit();

  void Encode(Encoder& out) const;
  // kCorruption unless the bytes are as Encode writes them: `count` starts that never decrease,
  // from {0, 0} to `end`.
  static Result<TrieBuckets> Decode(Decoder& in, uint64_t count, Start end);

 private:
  static constexpr uint64_t kWide = uint64_t{1} << 63;
  struct Group {
    uint32_t rank;
    uint64_t bit;  // or kWide and the index of the group's first start in wide_
  };
  struct Distance {
    uint16_t rank;
    uint16_t bit;
  };

  void Widen(Group& group, size_t first);

  std::vector<Group> groups_;
  std::vector<Distance> starts_;
  std::vector<Start> wide_;
};

}  // namespace siltfs
