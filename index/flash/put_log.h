// The log of the entries that are only in memory: what was put since a partition has last moved its
// buffer to flash. It makes puts durable without a change of the partitions' structures. Entries
// are numbered in the order in which they are put; a partition remembers from which number on it
// needs the log (flash_index.h).
//
// A log that has become long is replaced by a new one with the entries of the buffers.
//
// Thread-safety: none. Ownership: `files` must outlive the object. Durability: an entry is durable
// after Seal, PageFiles::Sync and a checkpoint. Errors: after kNoSpace a call may be repeated; the
// entries stay in memory until then.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "index/flash/page_files.h"
#include "store/base/aligned_buffer.h"

namespace siltfs {

class PutLog {
 public:
  static constexpr uint32_t kPagesPerFile = 4096;

  // Uses this log of `files`.
  PutLog(PageFiles& files, size_t log);

  // Makes room for one entry in memory, by writing pages if necessary.
  Status MakeRoom();
  // Appends an entry. Requires room.
  void Add(const FlashEntry& entry);
  // The number of the next entry.
  uint64_t next_number() const { return next_number_; }
  // The next entry gets this number or a greater one. A log without entries does not know which
  // numbers were used. Call it after Replay.
  void RaiseNumber(uint64_t number) { next_number_ = std::max(next_number_, number); }
  // Writes the last page, even if it is not full.
  Status Seal();

  // Calls `visit` with all entries and their numbers, oldest first; called once, before any other
  // call. kCorruption if a page is damaged.
  using Visit = std::function<Status(uint64_t number, const FlashEntry& entry)>;
  Status Replay(const Visit& visit);

  // Pages on flash. From any thread.
  uint64_t pages() const { return pages_.load(std::memory_order_relaxed); }
  // Begins a new log beside the old one. Call it after Seal, and end with DropOldLog or KeepOldLog.
  // Entries that were added in between are in the new log only.
  void BeginNewLog();
  bool has_old_log() const { return !old_.empty(); }
  // The entries of the old log are no longer needed after the next checkpoint.
  void DropOldLog();
  // Gives the new log up, and releases its pages. Entries are appended to the old log again.
  void KeepOldLog();

  // From any thread. Without the addresses of an old log.
  uint64_t memory_bytes() const { return buffer_.size() + pages() * sizeof(PageAddress); }

 private:
  PageBytes Page(size_t i) { return PageBytes(buffer_.data() + i * kPageSize, kPageSize); }
  Status Write(size_t pages);
  void ClearBuffer();
  void Release(std::vector<PageAddress>& pages);

  PageFiles& files_;
  const size_t log_;
  AlignedBuffer buffer_;
  size_t open_page_ = 0;   // in the buffer; earlier pages are full
  size_t open_count_ = 0;  // entries in the open page
  uint64_t next_number_ = 1;
  std::vector<PageAddress> live_;
  std::vector<PageAddress> old_;    // of the old log, while there are two
  std::atomic<uint64_t> pages_{0};  // live_.size()
};

}  // namespace siltfs
