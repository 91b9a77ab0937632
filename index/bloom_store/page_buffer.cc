#include "index/bloom_store/page_buffer.h"

#include <algorithm>

namespace siltfs {

uint64_t PageBuffer::memory_bytes() const {
  return page_.size() + (active_ ? active_->memory_bytes() : 0) +
         overflow_.size() * sizeof(FlashEntry);
}

std::optional<size_t> PageBuffer::PlaceOf(uint64_t hash) const {
  if (!active_ || !active_->MayHave(hash)) return std::nullopt;
  for (size_t i = 0; i < count_; ++i) {
    if (layout_.HashAt(Page(), i) == hash) return i;
  }
  return std::nullopt;
}

std::optional<FlashEntry> PageBuffer::Find(uint64_t hash) const {
  if (const auto place = PlaceOf(hash)) return layout_.Read(Page(), *place);
  const auto found = std::ranges::find(overflow_, hash, &FlashEntry::hash);
  if (found != overflow_.end()) return *found;
  return std::nullopt;
}

bool PageBuffer::Insert(const FlashEntry& entry) {
  if (const auto place = PlaceOf(entry.hash)) {
    layout_.Write(Page(), *place, entry);
    return true;
  }
  const auto found = std::ranges::find(overflow_, entry.hash, &FlashEntry::hash);
  if (found != overflow_.end()) {
    *found = entry;
    return true;
  }
  if (count_ == layout_.per_page()) return false;
  if (!active_) {
    page_ = AlignedBuffer(kPageSize);
    active_.emplace(filter_shape_);
  }
  layout_.Write(Page(), count_++, entry);
  active_->Add(entry.hash);
  return true;
}

void PageBuffer::InsertAnyway(const FlashEntry& entry) {
  if (!Insert(entry)) overflow_.push_back(entry);
}

void PageBuffer::Clear() {
  page_ = AlignedBuffer();
  active_.reset();
  count_ = 0;
  std::vector<FlashEntry>().swap(overflow_);
}

std::vector<FlashEntry> PageBuffer::entries() const {
  std::vector<FlashEntry> entries;
  entries.reserve(size());
  for (size_t i = 0; i < count_; ++i) entries.push_back(layout_.Read(Page(), i));
  entries.insert(entries.end(), overflow_.begin(), overflow_.end());
  return entries;
}

}  // namespace siltfs
