// Says of a name that it is not among some keys that never change: a ribbon filter, the homogeneous
// one (Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate
// Membership Using Ribbon", SEA 2022). A key is an equation over 64 neighbouring bits of a solution
// ("slice"): their sum, with the key's coefficients, is 0. A key that was added always is; of
// others half are not. Eight slices solve the same equations, each with other bits where there is a
// choice; a name is asked of as many of them as there are, so every slice in memory halves what
// passes, for 1.11 bits a key (a Bloom filter takes 1.44 for that). Any number of slices is a
// filter, the first ones as well as all: memory that grows or shrinks loads or drops slices, and
// nothing is built anew.
//
// Where a key's equation lies rises with its hash, so that keys that come in order, as a merge
// writes them, fill one block of the solution after the other, and building takes the memory of one
// block (RibbonBlock).
//
// When not to use it: for keys that come in no order, or one by one.
//
// Thread-safety: RibbonBlock belongs to one thread; the others are values. Memory: as said.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "store/env/page_allocator.h"

namespace siltfs {

// How many slices a filter has at most: all of them pass 2^-8 = 0.4 % of the names that are not
// there.
inline constexpr unsigned kRibbonSlices = 8;

// How large the solution is: blocks of words of 64 bits.
struct RibbonShape {
  static constexpr uint32_t kMostBlockWords = 128;

  // For so many keys, whose hashes have the same `skip_bits` (< 64) leading bits. More may come:
  // then more names pass, but never is a key denied.
  static RibbonShape For(uint64_t keys, unsigned skip_bits);

  unsigned skip_bits = 0;
  uint32_t blocks = 0;
  uint32_t block_words = 0;  // 1 to kMostBlockWords

  uint64_t slice_words() const { return uint64_t{blocks} * block_words; }
  uint64_t slice_bytes() const { return slice_words() * sizeof(uint64_t); }

  friend bool operator==(const RibbonShape&, const RibbonShape&) = default;
};

// A key's equation.
struct RibbonRow {
  static RibbonRow Of(const RibbonShape& shape, uint64_t hash);

  uint32_t block;
  uint32_t start;         // the first of its 64 bits, in the block
  uint64_t coefficients;  // of them, the first in the lowest bit, which is set
};

// The equations of one block, and their solutions. Memory: 8 bytes a bit, 64 KiB.
class RibbonBlock {
 public:
  explicit RibbonBlock(uint32_t words) : rows_(size_t{words} * 64) {}

  // `start` and `coefficients` as in a row of this block.
  void Add(uint32_t start, uint64_t coefficients);
  // The solutions, each of the block's words. What no equation says is drawn from `seed`. The block
  // is empty then.
  using Solutions = std::array<std::span<uint64_t>, kRibbonSlices>;
  void Solve(uint64_t seed, const Solutions& solutions);

 private:
  std::vector<uint64_t> rows_;  // by start; 0: none
};

// A slice: shape.slice_words() of them. As slices are replaced with every merge, and grow a little,
// pages of their own also for small ones: on the heap they left holes as large as themselves.
using RibbonSlice = std::vector<uint64_t, PageAllocator<uint64_t, 4 << 10>>;

// The slices that are in memory; they are shared with the filters that have more or fewer.
class RibbonFilter {
 public:
  explicit RibbonFilter(const RibbonShape& shape) : shape_(shape) {}

  // The same with one slice more: the one after the last.
  RibbonFilter With(std::shared_ptr<const RibbonSlice> slice) const;
  // The same with the first `slices` (<= slices()).
  RibbonFilter WithFirst(unsigned slices) const;

  const RibbonShape& shape() const { return shape_; }
  unsigned slices() const { return static_cast<unsigned>(slices_.size()); }
  uint64_t memory_bytes() const { return slices() * shape_.slice_bytes(); }

  // False: no key has this hash. Always true of a key, and where there is no slice.
  bool MayContain(uint64_t hash) const;
  // Brings what MayContain will touch first into the processor's cache.
  void Prefetch(uint64_t hash) const;

 private:
  RibbonShape shape_;
  std::vector<std::shared_ptr<const RibbonSlice>> slices_;
};

}  // namespace siltfs
