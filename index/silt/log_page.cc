#include "index/silt/log_page.h"

#include <algorithm>
#include <cassert>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kChecksumSize = 8;

}  // namespace

void EncodeLogSlot(PageBytes page, size_t index, const IndexEntry& entry) {
  assert(index < kLogSlotsPerPage);
  EncodeSlot(SlotOfPage(page, index + 1), entry);
}

IndexEntry DecodeLogSlot(ConstPageBytes page, size_t index) {
  assert(index < kLogSlotsPerPage);
  return DecodeSlot(SlotOfPage(page, index + 1));
}

void SealLogPage(PageBytes page, const LogPageHeader& header) {
  Encoder out;
  out.U64(header.log_id).U64(header.complete_sequence).U32(header.page_number);
  out.U16(header.count).U16(0);
  assert(out.size() == kSlotSize - kChecksumSize);
  std::copy(out.view().begin(), out.view().end(), page.begin() + kChecksumSize);
  Encoder checksum;
  checksum.U64(Checksum(page.subspan<kChecksumSize>()));
  std::copy(checksum.view().begin(), checksum.view().end(), page.begin());
}

std::optional<LogPageHeader> CheckLogPage(ConstPageBytes page, uint64_t log_id,
                                          uint32_t page_number) {
  Decoder in(page);
  if (in.U64() != Checksum(page.subspan<kChecksumSize>())) return std::nullopt;
  LogPageHeader header;
  header.log_id = in.U64();
  header.complete_sequence = in.U64();
  header.page_number = in.U32();
  header.count = in.U16();
  const uint16_t reserved = in.U16();
  if (header.log_id != log_id || header.page_number != page_number ||
      header.count > kLogSlotsPerPage || reserved != 0) {
    return std::nullopt;
  }
  return header;
}

}  // namespace siltfs
