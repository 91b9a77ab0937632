// A filter for an immutable set of keys that rules out absent names: the homogeneous ribbon filter
// (Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate
// Membership Using Ribbon", SEA 2022). A key is an equation over 64 neighbouring bits of a solution
// ("slice"): their sum, weighted with the key's coefficients, is 0. Every added key satisfies its
// equation; half of the other names do not. Eight slices solve the same equations, each with
// different values for the free bits. A lookup tests all slices in memory, so every slice halves
// the false positives, for 1.11 bits per key (a Bloom filter takes 1.44 for that). Any number of
// slices, from the first on, forms a filter. So when memory grows or shrinks, slices are loaded or
// dropped, and nothing is rebuilt.
//
// The position of a key's equation rises with its hash. A merge writes keys in order, so they fill
// one block of the solution after the other. Building therefore takes the memory of one block
// (RibbonBlock).
//
// Do not use it for keys that come in no order, or that are added one by one over time.
//
// Thread-safety: RibbonBlock belongs to one thread; the other classes are values. Memory: stated at
// each class.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "store/env/page_allocator.h"

namespace siltfs {

// Slices of a whole filter, which lets 2^-8 = 0.4 % of the absent names pass.
inline constexpr unsigned kRibbonSlices = 8;

// Size of the solution: blocks of words of 64 bits.
struct RibbonShape {
  static constexpr uint32_t kMostBlockWords = 128;

  struct Density {
    uint64_t bits_per_hundred_keys;
    uint32_t most_block_words;
  };
  static const Density kUsualDensity;

  // Returns the shape for `keys` keys that share the `skip_bits` (< 64) leading bits of their
  // hashes. More keys may be added: then more absent names pass, but no key is ever ruled out.
  static RibbonShape For(uint64_t keys, unsigned skip_bits, const Density& density = kUsualDensity);

  unsigned skip_bits = 0;
  uint32_t blocks = 0;
  uint32_t block_words = 0;  // at least 1

  uint64_t slice_words() const { return uint64_t{blocks} * block_words; }
  uint64_t slice_bytes() const { return slice_words() * sizeof(uint64_t); }

  friend bool operator==(const RibbonShape&, const RibbonShape&) = default;
};

// A key's equation.
struct RibbonRow {
  static RibbonRow Of(const RibbonShape& shape, uint64_t hash);

  uint32_t block;
  uint32_t start;         // number in the block of the first of its 64 bits
  uint64_t coefficients;  // of these bits; the first is the lowest bit, which is set
};

// The equations of one block, and their solutions. Memory: 8 bytes per bit.
class RibbonBlock {
 public:
  explicit RibbonBlock(uint32_t words) : rows_(size_t{words} * 64) {}

  // Adds the equation of a RibbonRow of this block.
  void Add(uint32_t start, uint64_t coefficients);
  // Computes the solutions, each of the block's size. Free bits are drawn from `seed`. Leaves the
  // block empty.
  using Solutions = std::array<std::span<uint64_t>, kRibbonSlices>;
  void Solve(uint64_t seed, const Solutions& solutions);
  // The same for any number of slices up to 64. The words of all slices for one place are
  // neighbours in `words`.
  void SolveInterleaved(uint64_t seed, unsigned slices, std::span<uint64_t> words);

 private:
  using Words = std::array<uint64_t, 64>;  // by slice
  template <typename Slices, typename Take>
  void SolveRows(uint64_t seed, Slices slices, const Take& take);

  PageVector<uint64_t> rows_;  // by start; 0: none
};

// A slice: shape.slice_words() words. Even a small slice gets pages of its own. Every merge
// replaces slices by slightly larger ones. On the heap, each replaced slice would leave a hole of
// its size.
using RibbonSlice = std::vector<uint64_t, PageAllocator<uint64_t, 4 << 10>>;

// The slices of one filter that are in memory. Copies with more or fewer slices share them.
class RibbonFilter {
 public:
  explicit RibbonFilter(const RibbonShape& shape) : shape_(shape) {}

  // The same filter with the next slice added.
  RibbonFilter With(std::shared_ptr<const RibbonSlice> slice) const;
  // The same filter with only the first `slices` (<= slices()).
  RibbonFilter WithFirst(unsigned slices) const;

  const RibbonShape& shape() const { return shape_; }
  unsigned slices() const { return static_cast<unsigned>(slices_.size()); }
  uint64_t memory_bytes() const { return slices() * shape_.slice_bytes(); }

  // Returns false only if no key has this hash. Returns true for the hash of each key, and for
  // every hash if there is no slice.
  bool MayContain(uint64_t hash) const;
  // Prefetches the words that MayContain reads first.
  void Prefetch(uint64_t hash) const;

 private:
  RibbonShape shape_;
  std::vector<std::shared_ptr<const RibbonSlice>> slices_;
};

}  // namespace siltfs
