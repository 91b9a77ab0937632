#include "index/flash/cuckoo_filter.h"

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs {

CuckooFilter::CuckooFilter(const CuckooTable& table)
    : bucket_bits_(table.bucket_bits()), tags_(table.capacity()) {
  table.ForEachPlace([this](size_t place, uint16_t tag, uint32_t) { tags_[place] = tag; });
  table.ForEachStashed([this](const CuckooPlace& place, uint32_t) { stash_.push_back(place); });
  stash_.shrink_to_fit();
}

bool CuckooFilter::Occupied(size_t slot) const {
  return slot < tags_.size() ? (tags_[slot] & kTagValid) != 0 : slot < slots();
}

size_t CuckooFilter::memory_bytes() const {
  return tags_.capacity() * sizeof(uint16_t) + stash_.capacity() * sizeof(CuckooPlace);
}

CuckooTable::Candidates CuckooFilter::Find(uint64_t hash) const {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  CuckooTable::Candidates found;
  for (size_t side = 0; side < 2; ++side) {
    const size_t first = place.buckets[side] * kBucketWays;
    uint64_t ways = WaysWithTag(BucketTags(&tags_[first]), place.tags[side]);
    if (side == 1 && place.buckets[1] == place.buckets[0]) ways = 0;
    for (; ways != 0; ways &= ways - 1) found.Add(static_cast<uint32_t>(first + FirstWay(ways)));
  }
  for (size_t i = 0; i < stash_.size(); ++i) {
    if (stash_[i] == place) found.Add(static_cast<uint32_t>(tags_.size() + i));
  }
  return found;
}

void CuckooFilter::Prefetch(uint64_t hash) const {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  for (uint32_t bucket : place.buckets) __builtin_prefetch(&tags_[bucket * kBucketWays]);
}

bool CuckooFilter::Finds(uint64_t hash, uint32_t slot) const {
  const CuckooTable::Candidates found = Find(hash);
  return std::find(found.begin(), found.end(), slot) != found.end();
}

std::string CuckooFilter::Encode() const {
  Encoder out;
  out.U32(static_cast<uint32_t>(stash_.size())).U32(0);
  for (const CuckooPlace& place : stash_) {
    out.U32(place.buckets[0]).U32(place.buckets[1]).U16(place.tags[0]).U16(place.tags[1]);
  }
  for (uint16_t tag : tags_) out.U16(tag);
  return out.Take();
}

Result<CuckooFilter> CuckooFilter::Decode(unsigned bucket_bits, ByteView bytes) {
  const auto wrong = [](const char* what) { return Status(StatusCode::kCorruption, what); };
  if (bucket_bits < 1 || bucket_bits > kMaxBucketBits)
    return wrong("has an invalid number of buckets");
  CuckooFilter filter;
  filter.bucket_bits_ = bucket_bits;
  const size_t places = kBucketWays << bucket_bits;
  const uint32_t buckets = 1U << bucket_bits;
  Decoder in(bytes);
  const uint32_t stashed = in.U32();
  const uint32_t reserved = in.U32();
  if (!in.ok() || reserved != 0 || stashed > CuckooTable::kStashSize)
    return wrong("has a filter of a wrong size");
  for (uint32_t i = 0; i < stashed; ++i) {
    CuckooPlace place{};
    for (uint32_t& bucket : place.buckets) bucket = in.U32();
    for (uint16_t& tag : place.tags) tag = in.U16();
    if (place.buckets[0] >= buckets || place.buckets[1] >= buckets) {
      return wrong("has a filter with an invalid bucket");
    }
    filter.stash_.push_back(place);
  }
  if (in.remaining() != places * sizeof(uint16_t)) return wrong("has a filter of a wrong size");
  filter.tags_.resize(places);
  for (uint16_t& tag : filter.tags_) tag = in.U16();
  return filter;
}

}  // namespace siltfs
