#include "store/bucket/segment_table.h"

#include <algorithm>

namespace siltfs {

std::optional<SegmentContent> SegmentTable::Find(SegmentId id) const {
  const auto page = pages_.find(id >> kPageShift);
  if (page == pages_.end()) return std::nullopt;
  const auto entry = std::ranges::lower_bound(page->second, id, {}, &Entry::id);
  if (entry == page->second.end() || entry->id != id) return std::nullopt;
  return SegmentContent{{entry->id, entry->generation}, entry->size};
}

void SegmentTable::Set(const SegmentContent& content) {
  Page& page = pages_[content.id.segment >> kPageShift];
  const Entry added{content.id.segment, content.size, content.id.generation};
  const auto entry = std::ranges::lower_bound(page, added.id, {}, &Entry::id);
  bytes_ += added.size;
  if (entry != page.end() && entry->id == added.id) {
    bytes_ -= entry->size;
    *entry = added;
    return;
  }
  page.insert(entry, added);
  ++size_;
}

void SegmentTable::Erase(SegmentId id) {
  const auto page = pages_.find(id >> kPageShift);
  if (page == pages_.end()) return;
  const auto entry = std::ranges::lower_bound(page->second, id, {}, &Entry::id);
  if (entry == page->second.end() || entry->id != id) return;
  bytes_ -= entry->size;
  page->second.erase(entry);
  --size_;
  if (page->second.empty()) pages_.erase(page);
}

void SegmentTable::Visit(const std::function<void(const SegmentContent&)>& visit) const {
  for (const auto& [number, page] : pages_) {
    for (const Entry& entry : page) visit({{entry.id, entry.generation}, entry.size});
  }
}

}  // namespace siltfs
