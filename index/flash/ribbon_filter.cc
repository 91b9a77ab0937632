#include "index/flash/ribbon_filter.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace siltfs {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr unsigned kWidth = 64;  // of an equation

// Bits for a hundred keys. With fewer than 110, some stretches of the solution have as many
// equations as bits. All bits of such a stretch are then zero, and every name passes there.
// Measured shares of absent names that pass eight slices: 2.4 times the expected share with 105
// bits, 1.4 times with 108, and 1.02 times with 110.
constexpr uint64_t kBitsPerHundredKeys = 111;

// The product of `fraction` / 2^64, which is from 0 to below 1, and the whole number `of`. `whole`
// is the product's whole part, so it is below `of`. `rest` / 2^64 is its fractional part.
struct Share {
  uint64_t whole;
  uint64_t rest;
};
Share ShareOf(uint64_t fraction, uint64_t of) {
  const Wide product = Wide{fraction} * of;
  return {.whole = static_cast<uint64_t>(product >> 64), .rest = static_cast<uint64_t>(product)};
}

// A bijection in which each bit of the result depends on all bits of `x`. Hashes of neighboring
// places share their leading bits, so they must be mixed.
uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9FB21C651E98DF25;
  x ^= x >> 29;
  x *= 0xD6E8FEB86659FD93;
  return x ^ x >> 32;
}

// Not std::popcount: without a popcount instruction it becomes a function call.
uint64_t Parity(uint64_t x) { return static_cast<uint64_t>(__builtin_parityll(x)); }

}  // namespace

const RibbonShape::Density RibbonShape::kUsualDensity = {
    .bits_per_hundred_keys = kBitsPerHundredKeys, .most_block_words = kMostBlockWords};

RibbonShape RibbonShape::For(uint64_t keys, unsigned skip_bits, const Density& density) {
  const uint64_t most_bits = uint64_t{density.most_block_words} * kWidth;
  // Add the width of one equation, because no equation begins in the last bits.
  const uint64_t per_hundred = density.bits_per_hundred_keys;
  const uint64_t bits = keys / 100 * per_hundred + keys % 100 * per_hundred / 100;
  const uint64_t blocks =
      std::clamp<uint64_t>((bits + most_bits - kWidth - 1) / (most_bits - kWidth), 1, UINT32_MAX);
  const uint64_t block_bits = (bits + blocks - 1) / blocks + kWidth;
  RibbonShape shape;
  shape.skip_bits = skip_bits;
  shape.blocks = static_cast<uint32_t>(blocks);
  shape.block_words = static_cast<uint32_t>(
      std::min<uint64_t>((block_bits + kWidth - 1) / kWidth, density.most_block_words));
  return shape;
}

RibbonRow RibbonRow::Of(const RibbonShape& shape, uint64_t hash) {
  const Share block = ShareOf(hash << shape.skip_bits, shape.blocks);
  const Share start = ShareOf(block.rest, uint64_t{shape.block_words} * kWidth - kWidth + 1);
  return {.block = static_cast<uint32_t>(block.whole),
          .start = static_cast<uint32_t>(start.whole),
          .coefficients = Mix(hash) | 1};
}

void RibbonBlock::Add(uint32_t start, uint64_t coefficients) {
  // Gaussian elimination: a bit that has an equation is replaced by the other bits of that
  // equation.
  while (rows_[start] != 0) {
    coefficients ^= rows_[start];
    if (coefficients == 0) return;  // the equation is redundant
    const int zeros = std::countr_zero(coefficients);
    coefficients >>= zeros;
    start += static_cast<uint32_t>(zeros);
  }
  rows_[start] = coefficients;
}

// Computes the bits from the last one to the first, and passes each word of all slices to `take`.
// The value of a bit follows from its equation and the bits after it. A bit without an equation is
// free. The number of slices may be a constant, which makes the loop over them faster.
template <typename Slices, typename Take>
void RibbonBlock::SolveRows(uint64_t seed, Slices slices, const Take& take) {
  Words behind{};  // the 64 bits from this one on, by slice
  for (size_t word = rows_.size() / kWidth; word-- > 0;) {
    for (size_t bit = kWidth; bit-- > 0;) {
      const size_t place = word * kWidth + bit;
      const uint64_t row = rows_[place];
      const uint64_t free = row == 0 ? Mix(seed + place) : 0;
      for (unsigned slice = 0; slice < slices; ++slice) {
        behind[slice] <<= 1;
        behind[slice] |= row == 0 ? free >> slice & 1 : Parity(behind[slice] & row);
      }
    }
    take(word, behind);
  }
  std::fill(rows_.begin(), rows_.end(), 0);
}

void RibbonBlock::Solve(uint64_t seed, const Solutions& solutions) {
  constexpr std::integral_constant<unsigned, kRibbonSlices> kSlices;
  SolveRows(seed, kSlices, [&](size_t word, const Words& words) {
    for (unsigned slice = 0; slice < kSlices; ++slice) solutions[slice][word] = words[slice];
  });
}

void RibbonBlock::SolveInterleaved(uint64_t seed, unsigned slices, std::span<uint64_t> words) {
  SolveRows(seed, slices, [&](size_t word, const Words& solved) {
    std::copy_n(solved.begin(), slices, words.begin() + static_cast<ptrdiff_t>(word * slices));
  });
}

RibbonFilter RibbonFilter::With(std::shared_ptr<const RibbonSlice> slice) const {
  RibbonFilter more = *this;
  more.slices_.push_back(std::move(slice));
  return more;
}

RibbonFilter RibbonFilter::WithFirst(unsigned slices) const {
  RibbonFilter fewer(shape_);
  fewer.slices_.assign(slices_.begin(), slices_.begin() + slices);
  return fewer;
}

bool RibbonFilter::MayContain(uint64_t hash) const {
  if (slices_.empty()) return true;
  const RibbonRow row = RibbonRow::Of(shape_, hash);
  const size_t word = size_t{row.block} * shape_.block_words + row.start / kWidth;
  const unsigned shift = row.start % kWidth;
  for (const auto& slice : slices_) {
    uint64_t bits = (*slice)[word] >> shift;
    if (shift != 0) bits |= (*slice)[word + 1] << (kWidth - shift);
    if (Parity(bits & row.coefficients) != 0) return false;
  }
  return true;
}

void RibbonFilter::Prefetch(uint64_t hash) const {
  const RibbonRow row = RibbonRow::Of(shape_, hash);
  const size_t word = size_t{row.block} * shape_.block_words + row.start / kWidth;
  for (const auto& slice : slices_) __builtin_prefetch(&(*slice)[word]);
}

}  // namespace siltfs
