#include "store/env/sim_content.h"

#include <algorithm>
#include <cstring>

namespace siltfs {
namespace {

constexpr uint64_t kSectorSize = 512;

// Calls visit(page index, offset in the page, offset in the run, length) for each page of the run.
template <typename Visit>
void ForEachPage(uint64_t offset, uint64_t length, Visit visit) {
  for (uint64_t done = 0; done < length;) {
    const uint64_t at = offset + done;
    const uint64_t in_page = at % SimImage::kPageSize;
    const uint64_t step = std::min(length - done, SimImage::kPageSize - in_page);
    visit(at / SimImage::kPageSize, in_page, done, step);
    done += step;
  }
}

uint64_t PagesOf(uint64_t bytes) {
  return bytes / SimImage::kPageSize + (bytes % SimImage::kPageSize != 0 ? 1 : 0);
}

}  // namespace

SimImage::Page& SimImage::WritablePage(uint64_t index) {
  std::shared_ptr<Page>& page = pages_[index];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

size_t SimImage::Read(uint64_t offset, MutableByteView out) const {
  if (offset >= size_) return 0;
  const uint64_t length = std::min<uint64_t>(out.size(), size_ - offset);
  ForEachPage(offset, length, [&](uint64_t index, uint64_t in_page, uint64_t done, uint64_t step) {
    auto found = pages_.find(index);
    if (found == pages_.end()) {
      std::memset(out.data() + done, 0, step);
    } else {
      std::memcpy(out.data() + done, found->second->data() + in_page, step);
    }
  });
  return length;
}

void SimImage::Write(uint64_t offset, ByteView data) {
  if (data.empty()) return;
  ForEachPage(offset, data.size(),
              [&](uint64_t index, uint64_t in_page, uint64_t done, uint64_t step) {
                std::memcpy(WritablePage(index).data() + in_page, data.data() + done, step);
              });
  ExtendTo(offset + data.size());
}

void SimImage::Truncate(uint64_t size) {
  if (size < size_) {
    pages_.erase(pages_.lower_bound(PagesOf(size)), pages_.end());
    const uint64_t in_page = size % kPageSize;
    if (in_page != 0 && HasPage(size / kPageSize)) {
      Page& last = WritablePage(size / kPageSize);
      std::fill(last.begin() + static_cast<std::ptrdiff_t>(in_page), last.end(), 0);
    }
  }
  size_ = size;
}

void SimImage::TakePage(uint64_t index, const SimImage& from) {
  auto found = from.pages_.find(index);
  if (found == from.pages_.end()) {
    pages_.erase(index);
  } else {
    pages_[index] = found->second;
  }
}

void SimContent::Write(uint64_t offset, ByteView data) {
  if (data.empty()) return;
  ForEachPage(offset, data.size(), [&](uint64_t index, uint64_t, uint64_t, uint64_t) {
    if (NeedsPage(index)) ++charged_pages_;
    dirty_pages_.insert(index);
  });
  current_.Write(offset, data);
  journal_.push_back({false, offset, Bytes(data.begin(), data.end())});
}

void SimContent::Truncate(uint64_t size) {
  if (size < current_.size()) {
    cut_down_to_ = std::min(cut_down_to_.value_or(size), size);
    dirty_pages_.erase(dirty_pages_.lower_bound(PagesOf(size)), dirty_pages_.end());
    if (size % SimImage::kPageSize != 0) dirty_pages_.insert(size / SimImage::kPageSize);
  }
  current_.Truncate(size);
  claimed_pages_ = std::min(claimed_pages_, PagesOf(size));
  CountCharge();
  journal_.push_back({true, size, {}});
}

void SimContent::Sync() {
  if (cut_down_to_) durable_.Truncate(std::min(*cut_down_to_, durable_.size()));
  for (uint64_t index : dirty_pages_) durable_.TakePage(index, current_);
  durable_.Truncate(current_.size());
  durable_claimed_pages_ = claimed_pages_;
  journal_.clear();
  dirty_pages_.clear();
  cut_down_to_.reset();
}

void SimContent::LoseUnsynced() {
  // The size is kept: it is metadata, and a later Sync makes it durable.
  journal_.clear();
  dirty_pages_.clear();
}

void SimContent::Crash(const CrashPolicy& policy, Random& random) {
  using Unsynced = CrashPolicy::Unsynced;
  switch (policy.unsynced) {
    case Unsynced::kDrop:
      break;
    case Unsynced::kKeep:
      Sync();
      break;
    case Unsynced::kPrefix: {
      const uint64_t whole = random.Below(journal_.size() + 1);
      for (uint64_t i = 0; i < whole; ++i) {
        const Change& change = journal_[i];
        change.truncates ? durable_.Truncate(change.offset)
                         : durable_.Write(change.offset, change.data);
      }
      if (whole < journal_.size()) ApplyTorn(journal_[whole], policy.unsynced, random);
      break;
    }
    case Unsynced::kSubset:
    case Unsynced::kGarble:
      for (const Change& change : journal_) {
        const uint64_t fate = random.Below(3);
        if (fate == 0) continue;
        if (fate == 1 && !change.truncates) {
          ApplyTorn(change, policy.unsynced, random);
        } else {
          change.truncates ? durable_.Truncate(change.offset)
                           : durable_.Write(change.offset, change.data);
        }
      }
      break;
  }
  current_ = durable_;
  claimed_pages_ = durable_claimed_pages_;
  journal_.clear();
  dirty_pages_.clear();
  cut_down_to_.reset();
  CountCharge();
}

void SimContent::ApplyTorn(const Change& change, CrashPolicy::Unsynced unsynced, Random& random) {
  if (change.truncates) return;
  const uint64_t end = change.offset + change.data.size();
  const uint64_t first_sector = change.offset / kSectorSize;
  const uint64_t sectors = (end - 1) / kSectorSize - first_sector + 1;
  const uint64_t prefix = random.Below(sectors + 1);
  for (uint64_t sector = 0; sector < sectors; ++sector) {
    const bool survives =
        unsynced == CrashPolicy::Unsynced::kPrefix ? sector < prefix : random.OneIn(2);
    const bool garbled = !survives && unsynced == CrashPolicy::Unsynced::kGarble && random.OneIn(2);
    if (!survives && !garbled) continue;
    const uint64_t from = std::max((first_sector + sector) * kSectorSize, change.offset);
    const uint64_t to = std::min((first_sector + sector + 1) * kSectorSize, end);
    if (garbled) {
      Bytes noise(to - from);
      random.Fill(noise);
      durable_.Write(from, noise);
    } else {
      durable_.Write(from, ByteView(change.data).subspan(from - change.offset, to - from));
    }
  }
  // The device may have received the new size without the new bytes.
  if (random.OneIn(2)) durable_.ExtendTo(end);
}

bool SimContent::NeedsPage(uint64_t index) const {
  return index >= claimed_pages_ && !current_.HasPage(index);
}

uint64_t SimContent::PagesToClaim(uint64_t size) const {
  uint64_t needed = 0;
  for (uint64_t index = claimed_pages_; index < PagesOf(size); ++index) {
    if (!current_.HasPage(index)) ++needed;
  }
  return needed;
}

void SimContent::Claim(uint64_t size) {
  charged_pages_ += PagesToClaim(size);
  claimed_pages_ = std::max(claimed_pages_, PagesOf(size));
}

void SimContent::CountCharge() {
  charged_pages_ = claimed_pages_ + current_.PagesFrom(claimed_pages_);
}

}  // namespace siltfs
