// The page of a log of entries (in SILT: of a LogStore): 4,096 bytes with their own checksum. So
// replay stops exactly at the first page that is not as it was written. Format: docs/format.md,
// "SILT log page".
//
// A page is written only once, so a later write cannot tear a durable page. The first slot of each
// page belongs to the page's header, and has a slot number, too. Page numbers continue across all
// logs of a partition, so a log's first page shows whether pages at the end of the previous log are
// missing. Functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "index/flash/slot.h"

namespace siltfs {

// The header takes one slot.
constexpr size_t LogSlotsPerPage(const SlotLayout& layout) { return layout.slots_per_page() - 1; }

// Limit of the number of a log's pages. With it, slot numbers fit into 32 bits.
inline constexpr uint32_t kMaxLogPages = 1U << 25;

struct LogPageHeader {
  uint64_t log_id = 0;
  // All entries put with sequences up to this one are in this page or an earlier one.
  uint64_t complete_sequence = 0;
  uint32_t page_number = 0;  // in its partition; wraps
  uint16_t count = 0;        // slots in use, from the first
};

inline uint32_t LogSlotNumber(const SlotLayout& layout, uint32_t page, size_t index) {
  return page * static_cast<uint32_t>(layout.slots_per_page()) + 1 + static_cast<uint32_t>(index);
}
inline size_t LogIndexOfSlot(const SlotLayout& layout, uint32_t slot) {
  return layout.IndexOf(slot) - 1;
}

// index < LogSlotsPerPage(layout).
void EncodeLogSlot(const SlotLayout& layout, PageBytes page, size_t index, const SlotEntry& entry);
SlotEntry DecodeLogSlot(const SlotLayout& layout, ConstPageBytes page, size_t index);

// Writes header and checksum into a page. Used slots must be filled, all others zero.
void SealLogPage(PageBytes page, const LogPageHeader& header);

// Returns the header if the page is exactly as it was sealed for this place in this log.
std::optional<LogPageHeader> CheckLogPage(const SlotLayout& layout, ConstPageBytes page,
                                          uint64_t log_id, uint32_t page_number);

}  // namespace siltfs
