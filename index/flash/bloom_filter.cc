#include "index/flash/bloom_filter.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>

namespace siltfs {

static_assert(std::endian::native == std::endian::little, "rows are read as words");

unsigned BloomShape::BestProbes(double bits_per_entry) {
  return static_cast<unsigned>(
      std::clamp(std::round(bits_per_entry * std::numbers::ln2), 1.0, 16.0));
}

BloomShape BloomShape::Flat(uint64_t entries, double bits_per_entry) {
  const double bits = std::ceil(static_cast<double>(entries) * bits_per_entry);
  return {.blocks = 1,
          .block_bits = static_cast<uint32_t>(std::clamp(bits, 64.0, 4294967295.0)),
          .probes = BestProbes(bits_per_entry)};
}

// The finalizer of MurmurHash3. The bits must not depend on the hash's top bits alone, because all
// hashes of a partition share these.
uint64_t BloomShape::Mix(uint64_t hash) {
  hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCD;
  hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53;
  return hash ^ hash >> 33;
}

uint32_t BloomShape::BlockOf(uint64_t hash) const {
  return static_cast<uint32_t>((Mix(hash ^ 0x9E3779B97F4A7C15) >> 32) * blocks >> 32);
}

BloomFilter::BloomFilter(const BloomShape& shape, ByteView bytes)
    : shape_(shape), words_(shape.bytes() / 8, UINT64_MAX) {
  std::memcpy(words_.data(), bytes.data(), std::min<size_t>(bytes.size(), shape.bytes()));
}

Bytes BloomFilter::bytes() const {
  Bytes bytes(words_.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), words_.data(), bytes.size());
  return bytes;
}

void BloomFilter::Add(uint64_t hash) {
  const uint64_t first = uint64_t{shape_.BlockOf(hash)} * shape_.block_bits;
  shape_.ForEachBit(hash, [&](uint32_t bit) {
    words_[(first + bit) / 64] |= uint64_t{1} << (first + bit) % 64;
    return true;
  });
}

bool BloomFilter::MayHave(uint64_t hash) const {
  const uint64_t first = uint64_t{shape_.BlockOf(hash)} * shape_.block_bits;
  bool may_have = true;
  shape_.ForEachBit(hash, [&](uint32_t bit) { return may_have = Bit(first + bit); });
  return may_have;
}

ColumnSet ColumnSet::FirstColumns(size_t count) {
  ColumnSet set;
  for (size_t word = 0; word < set.words.size(); ++word) {
    const size_t here = std::min<size_t>(count - std::min(count, word * 64), 64);
    set.words[word] = here == 64 ? UINT64_MAX : (uint64_t{1} << here) - 1;
  }
  return set;
}

void SetSlicedColumn(MutableByteView block_rows, uint32_t block, size_t column,
                     const BloomFilter& filter) {
  const BloomShape& shape = filter.shape();
  assert(block_rows.size() >= shape.block_bits * kSlicedRowBytes);
  const uint64_t first = uint64_t{block} * shape.block_bits;
  for (uint32_t bit = 0; bit < shape.block_bits; ++bit) {
    if (!filter.Bit(first + bit)) continue;
    block_rows[bit * kSlicedRowBytes + column / 8] |= static_cast<uint8_t>(1U << column % 8);
  }
}

ColumnSet MatchSliced(const BloomShape& shape, ByteView block_rows, uint64_t hash) {
  // A vector of the compiler: one AND for all 128 columns.
  using Row = uint64_t __attribute__((vector_size(kSlicedRowBytes)));
  Row match = {UINT64_MAX, UINT64_MAX};
  shape.ForEachBit(hash, [&](uint32_t bit) {
    Row row;
    std::memcpy(&row, block_rows.data() + bit * kSlicedRowBytes, sizeof row);
    match &= row;
    return true;
  });
  ColumnSet set;
  std::memcpy(set.words.data(), &match, sizeof match);
  return set;
}

}  // namespace siltfs
