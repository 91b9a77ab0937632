#include "index/flash/flash_page.h"

#include <algorithm>
#include <cassert>

#include "index/flash/page_header.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

// Checksum (page_header.h), number, kind, a zero, count.
constexpr size_t kNumberAt = kPageChecksumSize;
constexpr size_t kKindAt = kNumberAt + 4;
constexpr size_t kCountAt = kKindAt + 2;
static_assert(kCountAt + 2 == kFlashPageHeaderSize);

}  // namespace

void SetPageKind(PageBytes page, uint8_t kind, uint16_t count) {
  Encoder out;
  out.U8(kind).U8(0).U16(count);
  std::copy(out.view().begin(), out.view().end(), page.begin() + kKindAt);
}

uint8_t PageKindOf(ConstPageBytes page) { return page[kKindAt]; }

uint16_t PageCountOf(ConstPageBytes page) { return Decoder(page.subspan(kCountAt)).U16(); }

void SealFlashPage(PageBytes page, const FlashPageHeader& header, uint64_t seed) {
  SetPageKind(page, header.kind, header.count);
  Encoder number;
  number.U32(header.number);
  std::copy(number.view().begin(), number.view().end(), page.begin() + kNumberAt);
  WritePageChecksum(page, seed);
}

std::optional<FlashPageHeader> CheckFlashPage(ConstPageBytes page, uint32_t number, uint64_t seed) {
  Decoder in(page.subspan(kNumberAt));
  FlashPageHeader header;
  header.number = in.U32();
  header.kind = in.U8();
  const uint8_t zero = in.U8();
  header.count = in.U16();
  if (header.number != number || zero != 0 || !HasPageChecksum(page, seed)) return std::nullopt;
  return header;
}

void RecordLayout::Write(PageBytes page, size_t i, const FlashEntry& entry) const {
  assert(i < per_page());
  const auto record = page.subspan(first_ + i * size_, kEntrySize);
  EncodeHash(record.first<kHashSize>(), entry.hash);
  entry.location.EncodeTo(record.subspan<kHashSize, Location::kEncodedSize>());
}

FlashEntry RecordLayout::Read(ConstPageBytes page, size_t i) const {
  assert(i < per_page());
  const auto record = page.subspan(first_ + i * size_, kEntrySize);
  return {.hash = DecodeHash(record.first<kHashSize>()),
          .location = Location::Decode(record.subspan<kHashSize, Location::kEncodedSize>())};
}

std::optional<FlashEntry> RecordLayout::FindLast(ConstPageBytes page, size_t count,
                                                 uint64_t hash) const {
  for (size_t i = std::min(count, per_page()); i-- > 0;) {
    if (HashAt(page, i) == hash) return Read(page, i);
  }
  return std::nullopt;
}

}  // namespace siltfs
