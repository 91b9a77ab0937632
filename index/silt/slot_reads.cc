#include "index/silt/slot_reads.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace siltfs {
namespace {

void TakeEntry(SlotRead& read, ConstLogPageBytes page, const std::optional<LogPageHeader>& header) {
  const size_t index = LogIndexOfSlot(read.slot);
  if (!header || index >= header->count) {
    read.outcome = SlotRead::Outcome::kDamaged;
    return;
  }
  read.outcome = SlotRead::Outcome::kRead;
  read.entry = DecodeLogSlot(page, index);
}

}  // namespace

SlotReadsResult ReadSlots(std::span<SlotRead> reads) {
  auto page_of = [](const SlotRead* read) {
    return std::tuple(read->store->id(), LogPageOfSlot(read->slot));
  };
  std::vector<SlotRead*> order;
  order.reserve(reads.size());
  for (SlotRead& read : reads) order.push_back(&read);
  std::sort(order.begin(), order.end(),
            [&](const SlotRead* a, const SlotRead* b) { return page_of(a) < page_of(b); });

  SlotReadsResult result;
  std::array<uint8_t, kLogPageSize> page;
  for (auto first = order.begin(); first != order.end();) {
    const auto end = std::find_if(
        first, order.end(), [&](const SlotRead* read) { return page_of(read) != page_of(*first); });
    const LogStore& store = *(*first)->store;
    const uint32_t number = LogPageOfSlot((*first)->slot);
    ++result.pages_read;
    Status status = store.ReadPages(number, page);
    if (status.ok()) {
      const auto header = CheckLogPage(page, store.id(), number);
      std::for_each(first, end, [&](SlotRead* read) { TakeEntry(*read, page, header); });
    } else if (result.status.ok()) {
      result.status = std::move(status);
    }
    first = end;
  }
  return result;
}

}  // namespace siltfs
