#include "index/silt/run_filter.h"

#include <algorithm>
#include <cmath>

#include "index/flash/cuckoo_place.h"

namespace siltfs {
namespace {

// Measured shares of absent names that pass 13 slices of a run of 7,900 entries: 1.9 times the
// expected share with 108 bits for a hundred keys, 1.3 times with 109, and 1.04 times with 111.
constexpr uint64_t kBitsPerHundredKeys = 111;
// The filter of the largest LogStore is one block. If a filter had several blocks, some would have
// 1 % more keys than others, and as many more names would pass as with 1 % fewer bits.
constexpr uint32_t kMostBlockWords = 2304;
static_assert((kBucketWays << kMaxBucketBits) * kBitsPerHundredKeys / 100 + 64 <=
              kMostBlockWords * 64);
constexpr uint64_t kPageBytes = 4096;

RibbonShape ShapeFor(uint64_t keys, unsigned skip_bits) {
  return RibbonShape::For(keys, skip_bits, {kBitsPerHundredKeys, kMostBlockWords});
}

// The share of absent names that pass.
double PassingSlices(unsigned slices) { return std::ldexp(1.0, -static_cast<int>(slices)); }

}  // namespace

uint64_t RunFilterBytes(unsigned slices, uint64_t keys) {
  return ShapeFor(keys, 0).slice_bytes() * slices;
}

uint64_t RunFilterMemory(uint64_t bytes) {
  if (bytes < kLeastPagedFilterBytes) return bytes;
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

RunFilterSlices RunFilterSlices::For(double runs_per_partition, uint64_t keys) {
  const double wanted = kExtraReadsOfRuns / (1 + runs_per_partition);
  RunFilterSlices chosen{.fewer = 0};  // until a number passes too many names
  for (unsigned slices = kLeastRunFilterSlices; slices <= kMostRunFilterSlices; ++slices) {
    const bool room_for_more =
        slices < kMostRunFilterSlices && RunFilterMemory(RunFilterBytes(slices + 1, keys)) ==
                                             RunFilterMemory(RunFilterBytes(slices, keys));
    if (room_for_more) continue;
    chosen.more = slices;
    if (PassingSlices(slices) <= wanted) break;
    chosen.fewer = slices;
  }
  if (chosen.fewer == 0 || chosen.fewer == chosen.more) {
    chosen.fewer = chosen.more;
    return chosen;
  }
  const double few = PassingSlices(chosen.fewer);
  chosen.share_of_more = (few - wanted) / (few - PassingSlices(chosen.more));
  return chosen;
}

unsigned RunFilterSlices::Of(uint64_t run) const {
  // Multiples of the golden ratio are spread evenly.
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const double fraction = std::ldexp(static_cast<double>(run * kGoldenRatio >> 11), -53);
  return fraction < share_of_more ? more : fewer;
}

double RunFilterSlices::PassingShare() const {
  return (1 - share_of_more) * PassingSlices(fewer) + share_of_more * PassingSlices(more);
}

double RunFilterSlices::MemoryBytes(uint64_t keys) const {
  const auto memory = [&](unsigned slices) {
    return static_cast<double>(RunFilterMemory(RunFilterBytes(slices, keys)));
  };
  return (1 - share_of_more) * memory(fewer) + share_of_more * memory(more);
}

RunFilterBuilder::RunFilterBuilder(uint64_t keys, unsigned skip_bits, unsigned slices)
    : rows_(ShapeFor(keys, skip_bits).block_words) {
  filter_.slices_ = slices;
  filter_.shape_ = ShapeFor(keys, skip_bits);
  filter_.words_.resize(filter_.shape_.slice_words() * slices);
}

void RunFilterBuilder::Add(uint64_t hash) {
  const RibbonRow row = RibbonRow::Of(filter_.shape_, hash);
  while (block_ < row.block) EndBlock();
  rows_.Add(row.start, row.coefficients);
}

void RunFilterBuilder::EndBlock() {
  const size_t words = size_t{filter_.shape_.block_words} * filter_.slices_;
  rows_.SolveInterleaved(uint64_t{block_} << 32, filter_.slices_,
                         std::span(filter_.words_).subspan(block_ * words, words));
  ++block_;
}

RunFilter RunFilterBuilder::Finish() {
  while (block_ < filter_.shape_.blocks) EndBlock();
  return std::move(filter_);
}

RunFilter RunFilter::Of(std::span<const uint64_t> hashes, unsigned skip_bits, unsigned slices) {
  RunFilterBuilder builder(hashes.size(), skip_bits, slices);
  for (const uint64_t hash : hashes) builder.Add(hash);
  return builder.Finish();
}

// Index of the word of the first slice that has the first bit of the row.
size_t RunFilter::PlaceOf(const RibbonRow& row) const {
  return (size_t{row.block} * shape_.block_words + row.start / 64) * slices_;
}

bool RunFilter::MayContain(uint64_t hash) const {
  const RibbonRow row = RibbonRow::Of(shape_, hash);
  const uint64_t* const words = &words_[PlaceOf(row)];
  const unsigned shift = row.start % 64;
  for (unsigned slice = 0; slice < slices_; ++slice) {
    uint64_t bits = words[slice] >> shift;
    if (shift != 0) bits |= words[slices_ + slice] << (64 - shift);
    if (__builtin_parityll(bits & row.coefficients) != 0) return false;
  }
  return true;
}

void RunFilter::Prefetch(uint64_t hash) const {
  const size_t place = PlaceOf(RibbonRow::Of(shape_, hash));
  __builtin_prefetch(&words_[place]);
  __builtin_prefetch(&words_[std::min(place + slices_, words_.size() - 1)]);
}

void RunFilter::Encode(Encoder& out) const {
  out.U8(static_cast<uint8_t>(slices_)).U8(static_cast<uint8_t>(shape_.skip_bits)).U16(0);
  out.U32(shape_.blocks).U32(shape_.block_words).U32(0);
  for (const uint64_t word : words_) out.U64(word);
}

Result<RunFilter> RunFilter::Decode(ByteView bytes) {
  Decoder in(bytes);
  RunFilter filter;
  filter.slices_ = in.U8();
  filter.shape_.skip_bits = in.U8();
  const uint32_t reserved = in.U16();
  filter.shape_.blocks = in.U32();
  filter.shape_.block_words = in.U32();
  const uint32_t more_reserved = in.U32();
  const bool valid = in.ok() && (reserved | more_reserved) == 0 &&
                     filter.slices_ >= kLeastRunFilterSlices &&
                     filter.slices_ <= kMostRunFilterSlices && filter.shape_.skip_bits < 64 &&
                     filter.shape_.blocks > 0 && filter.shape_.block_words > 0 &&
                     filter.shape_.block_words <= kMostBlockWords;
  if (!valid) return Status(StatusCode::kCorruption, "has a filter with an invalid header");
  const uint64_t words = filter.shape_.slice_words() * filter.slices_;  // below 2^44
  if (words * sizeof(uint64_t) != in.remaining()) {
    return Status(StatusCode::kCorruption, "has a filter of another size");
  }
  filter.words_.reserve(words);
  for (uint64_t i = 0; i < words; ++i) filter.words_.push_back(in.U64());
  return filter;
}

}  // namespace siltfs
