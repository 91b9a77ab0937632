#include "index/skimpy_stash/chain_log.h"

#include <algorithm>

namespace siltfs {

Result<ChainLog> ChainLog::Open(const PageFiles& files, size_t log, uint64_t stream, uint32_t first,
                                uint32_t next) {
  ChainLog opened;
  uint64_t at = first;
  for (const uint64_t id : files.FilesOf(log, stream)) {
    const uint32_t pages = files.PagesOf(id);
    if (pages == 0) continue;  // a failed append has made it
    opened.files_.push_back({.id = id, .first = static_cast<uint32_t>(at), .pages = pages});
    at += pages;
    if (at > next) break;
  }
  if (at != next) return Status(StatusCode::kCorruption, "has a log of the wrong length");
  opened.next_page_ = next;
  return opened;
}

std::optional<PageAddress> ChainLog::AddressOf(uint32_t page) const {
  if (page < first_page() || page >= next_page_) return std::nullopt;
  const auto after = std::ranges::upper_bound(files_, page, {}, &LogFile::first);
  const LogFile& file = *std::prev(after);
  return PageAddress::Of(file.id, page - file.first);
}

void ChainLog::Append(PageAddress first, uint32_t pages) {
  if (files_.empty() || files_.back().id != first.file()) {
    files_.push_back({.id = first.file(), .first = next_page_, .pages = 0});
  }
  files_.back().pages += pages;
  next_page_ += pages;
}

ChainLog::LogFile ChainLog::RemoveFirst() {
  const LogFile file = files_.front();
  files_.erase(files_.begin());
  return file;
}

}  // namespace siltfs
