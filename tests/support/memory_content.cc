#include "tests/support/memory_content.h"

#include <algorithm>

namespace siltfs::testing {

uint64_t MemoryContent::AllocatedBytes() const {
  uint64_t allocated = pages_.size() * kPageBytes;
  if (!pages_.empty()) {  // the last page may extend beyond the size
    const uint64_t end = (pages_.rbegin()->first + 1) * kPageBytes;
    if (end > size_) allocated -= end - size_;
  }
  return allocated;
}

size_t MemoryContent::Read(uint64_t offset, MutableByteView out) const {
  if (offset >= size_) return 0;
  const auto count = static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset));
  for (size_t done = 0; done < count;) {
    const uint64_t at = offset + done;
    const size_t within = at % kPageBytes;
    const size_t run = std::min<size_t>(kPageBytes - within, count - done);
    const auto page = pages_.find(at / kPageBytes);
    if (page == pages_.end()) {
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(done), run, uint8_t{0});
    } else {
      std::copy_n(page->second.begin() + static_cast<ptrdiff_t>(within), run,
                  out.begin() + static_cast<ptrdiff_t>(done));
    }
    done += run;
  }
  return count;
}

void MemoryContent::Write(uint64_t offset, ByteView data) {
  for (size_t done = 0; done < data.size();) {
    const uint64_t at = offset + done;
    const size_t within = at % kPageBytes;
    const size_t run = std::min<size_t>(kPageBytes - within, data.size() - done);
    Bytes& page = pages_[at / kPageBytes];
    page.resize(kPageBytes);
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(done), run,
                page.begin() + static_cast<ptrdiff_t>(within));
    done += run;
  }
  size_ = std::max(size_, offset + data.size());
}

void MemoryContent::Zero(uint64_t begin, uint64_t end) {
  for (auto page = pages_.lower_bound(begin / kPageBytes);
       page != pages_.end() && page->first * kPageBytes < end;) {
    const uint64_t at = page->first * kPageBytes;
    const uint64_t from = std::max(begin, at) - at;
    const uint64_t to = std::min(end, at + kPageBytes) - at;
    if (to - from == kPageBytes) {
      page = pages_.erase(page);
      continue;
    }
    std::fill(page->second.begin() + static_cast<ptrdiff_t>(from),
              page->second.begin() + static_cast<ptrdiff_t>(to), uint8_t{0});
    ++page;
  }
}

void MemoryContent::Resize(uint64_t size) {
  if (size < size_) {
    pages_.erase(pages_.lower_bound((size + kPageBytes - 1) / kPageBytes), pages_.end());
    const auto last = pages_.find(size / kPageBytes);
    if (last != pages_.end()) {  // removed bytes must not reappear when the file grows
      std::fill(last->second.begin() + static_cast<ptrdiff_t>(size % kPageBytes),
                last->second.end(), uint8_t{0});
    }
  }
  size_ = size;
}

std::optional<uint64_t> MemoryContent::Seek(uint64_t offset, SeekTarget target) const {
  if (offset >= size_) return std::nullopt;
  for (; offset < size_; offset = (offset / kPageBytes + 1) * kPageBytes) {
    const bool is_hole = !pages_.contains(offset / kPageBytes);
    if (is_hole == (target == SeekTarget::kHole)) return offset;
  }
  if (target == SeekTarget::kHole) return size_;
  return std::nullopt;
}

}  // namespace siltfs::testing
