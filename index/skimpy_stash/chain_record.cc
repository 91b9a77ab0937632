#include "index/skimpy_stash/chain_record.h"

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

// The top bit of a pointer tells the bucket.
constexpr uint32_t kSecondBit = 1U << 31;

uint32_t Scale(uint32_t bits, uint32_t range) {
  return static_cast<uint32_t>(uint64_t{bits} * range >> 32);
}

}  // namespace

uint32_t SkimpyStashShape::buckets() const {
  return static_cast<uint32_t>((capacity + entries_per_bucket - 1) / entries_per_bucket);
}

std::array<uint32_t, 2> SkimpyStashShape::BucketsOf(uint64_t hash) const {
  // The top bits of a hash choose the partition, so the buckets depend on the lower ones.
  const uint32_t first = Scale(static_cast<uint32_t>(hash), buckets());
  if (!enhanced) return {first, first};
  return {first, Scale(static_cast<uint32_t>(hash * 0x9E3779B97F4A7C15 >> 32), buckets())};
}

uint32_t SkimpyStashShape::BufferRecords() const {
  return static_cast<uint32_t>(std::min<uint64_t>(layout.per_page(), capacity / 4));
}

EntryTable::Shape SkimpyStashShape::BufferShape() const {
  // Three quarters of the places are used.
  return {.buckets = BufferRecords() / 3 + 1, .ways = 4};
}

void WriteChainRecord(const RecordLayout& layout, PageBytes page, size_t i,
                      const ChainRecord& record) {
  layout.Write(page, i, record.entry);
  Encoder pointer;
  pointer.U32(record.pointer | (record.second ? kSecondBit : 0));
  CopyBytes(pointer.view(), layout.Extra(page, i));
}

ChainRecord ReadChainRecord(const RecordLayout& layout, ConstPageBytes page, size_t i) {
  const uint32_t pointer = Decoder(layout.Extra(page, i)).U32();
  return {.entry = layout.Read(page, i),
          .second = (pointer & kSecondBit) != 0,
          .pointer = pointer & ~kSecondBit};
}

size_t ChainRecordsIn(const RecordLayout& layout, ConstPageBytes page) {
  if (PageKindOf(page) != SkimpyStashShape::kRecordPage) return 0;
  return std::min<size_t>(PageCountOf(page), layout.per_page());
}

}  // namespace siltfs
