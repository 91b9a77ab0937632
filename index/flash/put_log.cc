#include "index/flash/put_log.h"

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

constexpr uint8_t kPutPage = 1;
constexpr size_t kPagesAtOnce = 16;
// The number of a page's first entry is in front of the entries.
constexpr RecordLayout kLayout{RecordLayout::kEntrySize, sizeof(uint64_t)};

uint64_t FirstNumber(ConstPageBytes page) {
  return Decoder(page.subspan(kFlashPageHeaderSize)).U64();
}

}  // namespace

PutLog::PutLog(PageFiles& files, size_t log)
    : files_(files), log_(log), buffer_(kPagesAtOnce * kPageSize) {}

Status PutLog::MakeRoom() {
  if (open_count_ < kLayout.per_page()) return Status::Ok();
  if (open_page_ + 1 < kPagesAtOnce) {
    ++open_page_;
    open_count_ = 0;
    return Status::Ok();
  }
  return Write(kPagesAtOnce);
}

void PutLog::Add(const FlashEntry& entry) {
  const PageBytes page = Page(open_page_);
  if (open_count_ == 0) {
    Encoder number;
    number.U64(next_number_);
    CopyBytes(number.view(), page.subspan(kFlashPageHeaderSize));
  }
  kLayout.Write(page, open_count_++, entry);
  SetPageKind(page, kPutPage, static_cast<uint16_t>(open_count_));
  ++next_number_;
}

Status PutLog::Seal() {
  const size_t pages = open_page_ + (open_count_ > 0 ? 1 : 0);
  return pages == 0 ? Status::Ok() : Write(pages);
}

// Writes the first pages of the buffer, which are all pages with entries.
Status PutLog::Write(size_t pages) {
  SILTFS_ASSIGN_OR_RETURN(const PageAddress first,
                          files_.Append(log_, 0, buffer_.view().first(pages * kPageSize)));
  for (uint32_t i = 0; i < pages; ++i) live_.push_back(first + i);
  pages_ = live_.size();
  ClearBuffer();
  return Status::Ok();
}

void PutLog::ClearBuffer() {
  std::ranges::fill(buffer_.view(), 0);
  open_page_ = 0;
  open_count_ = 0;
}

Status PutLog::Replay(const Visit& visit) {
  for (const uint64_t file : files_.FilesOf(log_, 0)) {
    const PageAddress first = PageAddress::Of(file, 0);
    const uint32_t pages = files_.PagesOf(file);
    const auto replay = [&](uint32_t i, std::optional<ConstPageBytes> page) -> Status {
      const bool whole = page && PageKindOf(*page) == kPutPage &&
                         PageCountOf(*page) <= kLayout.per_page() &&
                         FirstNumber(*page) >= next_number_ && FirstNumber(*page) < UINT64_MAX / 2;
      if (!whole) return {StatusCode::kCorruption, "has a damaged page of the log of puts"};
      live_.push_back(first + i);
      next_number_ = FirstNumber(*page);
      for (size_t at = 0; at < PageCountOf(*page); ++at) {
        SILTFS_RETURN_IF_ERROR(visit(next_number_++, kLayout.Read(*page, at)));
      }
      return Status::Ok();
    };
    Status replayed = files_.Read(first, pages, replay);
    if (!replayed.ok()) {
      const auto place = files_.Resolve(first);
      return place && replayed.path().empty() ? std::move(replayed).At(place->file->path())
                                              : replayed;
    }
  }
  pages_ = live_.size();
  return Status::Ok();
}

void PutLog::Release(std::vector<PageAddress>& pages) {
  for (const PageAddress page : pages) files_.Release(page, 1);
  pages.clear();
}

void PutLog::BeginNewLog() {
  old_.swap(live_);
  pages_ = 0;
  files_.EndFile(log_, 0);
}

void PutLog::DropOldLog() { Release(old_); }

void PutLog::KeepOldLog() {
  Release(live_);
  live_.swap(old_);
  pages_ = live_.size();
  ClearBuffer();
}

}  // namespace siltfs
