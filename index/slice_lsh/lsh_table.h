// A slicetable of a SliceLSH on flash, and what merges slicetables. A page is a slice: the entries
// of one range of keys from all incarnations that were merged, those of the newest first.
//
// A slicetable never changes. It has a file of its own, which is removed with it.
//
// Thread-safety: functions and plain values, except LshMerge, which belongs to one thread.
// Format: docs/format.md, "SliceLSH".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "index/flash/page_files.h"
#include "index/slice_lsh/lsh_entry.h"

namespace siltfs {

struct LshTable {
  PageAddress first;
  uint32_t pages = 0;
  uint64_t entries = 0;

  PageAddress PageOf(uint64_t key) const { return first + LshPageOf(key, pages); }
  friend bool operator==(const LshTable&, const LshTable&) = default;
};

// The slicetables of one super-feature, oldest first.
using LshTables = std::vector<LshTable>;

// Reads all entries in the order of the pages. Pages that are damaged, and entries in wrong pages,
// are left out and counted as damaged pages. Memory: 100 KiB. The caller must have a pin.
class LshTableReader {
 public:
  LshTableReader(const PageFiles& files, const LshTable& table) : files_(files), table_(table) {}

  struct Read {
    LshEntry entry;
    uint32_t position = 0;  // in its page; the newest entry has position 0
  };
  // Appends the entries with keys below `end` that earlier calls have not given. `end` must not
  // fall from call to call.
  Status TakeBelow(uint64_t end, std::vector<Read>& entries);
  uint64_t damaged_pages() const { return damaged_pages_; }

 private:
  Status ReadSome();

  const PageFiles& files_;
  const LshTable table_;
  uint32_t next_page_ = 0;
  std::vector<Read> waiting_;  // with greater keys than the last `end`
  uint64_t damaged_pages_ = 0;
};

struct LshMergeOptions {
  size_t log = 0;
  uint64_t stream = 0;
  unsigned most_per_feature = 4;
  uint64_t most_entries = 0;
  const std::function<bool(SegmentId)>* is_gone = nullptr;  // null or empty: none is gone
};

struct LshMergeCounts {
  uint64_t damaged_pages = 0;
  uint64_t gone = 0;
  uint64_t repeated = 0;
  uint64_t overwritten = 0;
};

// Writes one slicetable from entries (LshBuffer::Sorted) and the slicetables `old`, oldest first.
// The result has no pages if no entry is left. After an error no page is in use. The caller must
// have a pin.
Result<LshTable> MergeLshTables(PageFiles& files, std::span<const LshEntry> buffer,
                                std::span<const LshTable> old, const LshMergeOptions& options,
                                LshMergeCounts& counts);

// Calls `report` with one sentence for each fault beyond damaged pages. The caller must have a pin.
Status VerifyLshTable(const PageFiles& files, const LshTable& table,
                      const std::function<void(const std::string&)>& report);

}  // namespace siltfs
