// The circular log of a SkimpyStash partition: pages with consecutive numbers in the page files of
// one stream ("SkimpyStash", section 4.6). Pages are appended at the tail; files leave at the head.
//
// A plain value; const calls may run concurrently. Memory: 16 bytes for each file.
#pragma once

#include <optional>
#include <vector>

#include "index/flash/page_files.h"

namespace siltfs {

class ChainLog {
 public:
  struct LogFile {
    uint64_t id = 0;
    uint32_t first = 0;  // number of its first page
    uint32_t pages = 0;
  };

  ChainLog() = default;
  // The log of a stream that has the pages `first` to `next` - 1. kCorruption if it has other ones.
  static Result<ChainLog> Open(const PageFiles& files, size_t log, uint64_t stream, uint32_t first,
                               uint32_t next);

  const std::vector<LogFile>& files() const { return files_; }  // oldest first
  uint32_t first_page() const { return files_.empty() ? next_page_ : files_.front().first; }
  uint32_t next_page() const { return next_page_; }
  uint32_t pages() const { return next_page_ - first_page(); }
  // Nothing if the log does not have the page.
  std::optional<PageAddress> AddressOf(uint32_t page) const;

  // Pages were appended to the stream.
  void Append(PageAddress first, uint32_t pages);
  // The first file is no longer needed.
  LogFile RemoveFirst();

 private:
  std::vector<LogFile> files_;
  uint32_t next_page_ = 0;
};

}  // namespace siltfs
