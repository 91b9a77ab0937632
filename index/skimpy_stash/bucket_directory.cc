#include "index/skimpy_stash/bucket_directory.h"

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

// 6 bits of a hash give the fewest false positives with one byte for each entry. Each bit depends
// on 10 bits of the mixed hash: a step from bit to bit, as in larger filters, would let the bits of
// a hash fall together in so few bytes, and would double the false positives of small buckets.
constexpr unsigned kProbes = 6;
constexpr unsigned kProbeBits = 10;
static_assert(kProbes * kProbeBits <= 64);

// The finalizer of MurmurHash3. All hashes of a bucket have similar lower bits.
uint64_t Mix(uint64_t hash) {
  hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCD;
  hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53;
  return hash ^ hash >> 33;
}

// Calls visit(bit) for the bits of a hash in a filter of so many bytes, until it returns false.
template <typename Visit>
void ForEachBit(uint64_t hash, uint64_t bytes, const Visit& visit) {
  uint64_t mixed = Mix(hash);
  for (unsigned i = 0; i < kProbes; ++i, mixed >>= kProbeBits) {
    const uint64_t bits = mixed & ((1U << kProbeBits) - 1);
    if (!visit(static_cast<uint32_t>(bits * bytes * 8 >> kProbeBits))) return;
  }
}

}  // namespace

void BucketDirectory::MakeHeads() { heads_.assign(shape_.buckets(), 0); }

void BucketDirectory::MakeFilters() {
  counts_.assign(shape_.buckets(), 0);
  filters_.assign(size_t{shape_.buckets()} * shape_.entries_per_bucket, 0);
}

void BucketDirectory::DropFilters() {
  std::vector<uint8_t>().swap(counts_);
  std::vector<uint8_t>().swap(filters_);
}

void BucketDirectory::TakeFilters(BucketDirectory& other) {
  counts_.swap(other.counts_);
  filters_.swap(other.filters_);
  entries_ = other.entries_;
}

bool BucketDirectory::MayHave(uint32_t bucket, uint64_t hash) const {
  if (filters_.empty()) return true;
  const uint8_t* const filter = filters_.data() + size_t{bucket} * shape_.entries_per_bucket;
  bool may_have = true;
  ForEachBit(hash, shape_.entries_per_bucket, [&](uint32_t bit) {
    may_have = (filter[bit / 8] >> bit % 8 & 1) != 0;
    return may_have;
  });
  return may_have;
}

bool BucketDirectory::ChoosesSecond(uint64_t hash, const std::array<uint32_t, 2>& more) const {
  const auto buckets = shape_.BucketsOf(hash);
  if (buckets[0] == buckets[1]) return false;
  // The first bucket wins, so the second one is allowed only if the first one lacks the hash.
  if (MayHave(buckets[0], hash)) return false;
  if (MayHave(buckets[1], hash)) return true;
  return counts_[buckets[1]] + more[1] < counts_[buckets[0]] + more[0];
}

bool BucketDirectory::Apply(const ChainRecord& record, uint32_t page) {
  const uint32_t bucket = record.BucketIn(shape_);
  if (!heads_.empty()) heads_[bucket] = page + 1;
  if (filters_.empty()) {
    ++entries_;
    return record.entry.tombstone();
  }
  const auto filter = Filter(bucket);
  if (record.pointer == 0) {
    entries_ -= counts_[bucket];
    counts_[bucket] = 0;
    std::ranges::fill(filter, 0);
  }
  bool had = true;
  ForEachBit(record.entry.hash, shape_.entries_per_bucket, [&](uint32_t bit) {
    uint8_t& byte = filter[bit / 8];
    const auto mask = static_cast<uint8_t>(1U << bit % 8);
    had = had && (byte & mask) != 0;
    byte |= mask;
    return true;
  });
  if (!had && counts_[bucket] < UINT8_MAX) {
    ++counts_[bucket];
    ++entries_;
  }
  return had;
}

uint64_t BucketDirectory::EncodedSize(const SkimpyStashShape& shape, bool with_filters) {
  const uint64_t of_bucket =
      sizeof(uint32_t) + (with_filters ? 1 + uint64_t{shape.entries_per_bucket} : 0);
  return shape.buckets() * of_bucket;
}

Bytes BucketDirectory::Encode() const {
  Encoder out;
  for (const uint32_t head : heads_) out.U32(head);
  out.Raw(counts_).Raw(filters_);
  const std::string text = out.Take();
  const ByteView bytes = AsBytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

bool BucketDirectory::Decode(ByteView bytes, bool with_filters, uint32_t pages) {
  Decoder in(bytes);
  MakeHeads();
  for (uint32_t& head : heads_) {
    head = in.U32();
    if (head > pages) return false;
  }
  if (!with_filters) return in.ok();
  MakeFilters();
  CopyBytes(in.Raw(counts_.size()), counts_);
  CopyBytes(in.Raw(filters_.size()), filters_);
  entries_ = 0;
  for (const uint8_t count : counts_) entries_ += count;
  return in.ok();
}

}  // namespace siltfs
