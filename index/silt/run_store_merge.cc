#include "index/silt/run_store_merge.h"

#include <algorithm>

namespace siltfs {

void RunStoreMerge::Reserve(size_t runs, size_t pages_at_once) {
  buffer_bytes_ = pages_at_once * kPageSize;
  if (runs == 0) return;
  // Not every allocator returns page-aligned memory.
  buffers_.resize(runs * buffer_bytes_ + kPageSize - 1);
  const size_t past = reinterpret_cast<uintptr_t>(buffers_.data()) % kPageSize;
  first_buffer_ = past == 0 ? 0 : kPageSize - past;
}

Status RunStoreMerge::Add(const FrozenFile& file, uint32_t age) {
  const MutableByteView pages = MutableByteView(buffers_).subspan(
      first_buffer_ + sources_.size() * buffer_bytes_, buffer_bytes_);
  Source& source = sources_.emplace_back(file, name_hash_, pages);
  SILTFS_RETURN_IF_ERROR(source.cursor.Next());
  Push(age, source);
  return Status::Ok();
}

void RunStoreMerge::Push(uint32_t age, Source& source) {
  if (!source.cursor.item()) return;
  heap_.push_back({.key = source.cursor.item()->key, .age = age, .source = &source});
  std::push_heap(heap_.begin(), heap_.end());
}

Status RunStoreMerge::Next() {
  std::pop_heap(heap_.begin(), heap_.end());
  const Head last = heap_.back();
  heap_.pop_back();
  SortedCursor& cursor = last.source->cursor;
  SILTFS_RETURN_IF_ERROR(cursor.Next());
  // A crafted file may have entries out of order. Without them the merge stays in order.
  while (cursor.item() && !(last.key < cursor.item()->key)) {
    ++last.source->out_of_order;
    SILTFS_RETURN_IF_ERROR(cursor.Next());
  }
  Push(last.age, *last.source);
  return Status::Ok();
}

uint64_t RunStoreMerge::damaged_pages() const {
  uint64_t pages = 0;
  for (const Source& source : sources_) {
    pages += source.cursor.damaged_pages() + (source.out_of_order > 0 ? 1 : 0);
  }
  return pages;
}

}  // namespace siltfs
