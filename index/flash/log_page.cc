#include "index/flash/log_page.h"

#include <algorithm>
#include <cassert>

#include "index/flash/page_header.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint64_t kSeed = 0;  // a log page has the log's id in its header
constexpr size_t kHeaderSize = 32;
// It fits in front of the second slot.
static_assert(kHeaderSize <= kNamedEntrySize && kHeaderSize <= kChunkSlots.OffsetInPage(1));

}  // namespace

void EncodeLogSlot(const SlotLayout& layout, PageBytes page, size_t index, const SlotEntry& entry) {
  assert(index < LogSlotsPerPage(layout));
  EncodeSlot(SlotOfPage(layout, page, index + 1), entry);
}

SlotEntry DecodeLogSlot(const SlotLayout& layout, ConstPageBytes page, size_t index) {
  assert(index < LogSlotsPerPage(layout));
  return DecodeSlot(SlotOfPage(layout, page, index + 1));
}

void SealLogPage(PageBytes page, const LogPageHeader& header) {
  Encoder out;
  out.U32(header.page_number).U16(header.count).U16(0);
  out.U64(header.log_id).U64(header.complete_sequence);
  assert(out.size() == kHeaderSize - kPageChecksumSize);
  std::copy(out.view().begin(), out.view().end(), page.begin() + kPageChecksumSize);
  WritePageChecksum(page, kSeed);
}

std::optional<LogPageHeader> CheckLogPage(const SlotLayout& layout, ConstPageBytes page,
                                          uint64_t log_id, uint32_t page_number) {
  if (!HasPageChecksum(page, kSeed)) return std::nullopt;
  Decoder in(page.subspan<kPageChecksumSize>());
  LogPageHeader header;
  header.page_number = in.U32();
  header.count = in.U16();
  const uint16_t reserved = in.U16();
  header.log_id = in.U64();
  header.complete_sequence = in.U64();
  if (header.log_id != log_id || header.page_number != page_number ||
      header.count > LogSlotsPerPage(layout) || reserved != 0) {
    return std::nullopt;
  }
  return header;
}

}  // namespace siltfs
