// A LogStore (SILT, section 3.1): an append log on flash and the cuckoo table that finds keys in
// it.
//
// Entries and tombstones are appended to pages in memory, the tail. Full pages are appended to the
// file in batches, with one large write; until then lookups find their entries in memory. Opening
// an index replays the log to build the table. A full LogStore is frozen: it stays unchanged and
// const until its entries have moved into other stores.
//
// Thread-safety: const calls may run concurrently, including WriteOut and Sync. Other calls need
// exclusive access. A const LogStore may be shared. Durability: an entry is durable if Sync has
// returned OK after the entry's page was sealed and written out. Memory: the table's 6 bytes per
// place, and the tail.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "index/flash/cuckoo_table.h"
#include "index/flash/log_page.h"
#include "index/flash/store_counters.h"
#include "index/flash/store_files.h"
#include "store/env/env.h"

namespace siltfs {

class LogStore {
 public:
  struct Config {
    uint32_t partition = 0;
    uint64_t id = 0;
    uint32_t first_page = 0;  // the number of its first page in the partition
    unsigned bucket_bits = 0;
    NameHash name_hash;
    SlotLayout layout = kChunkSlots;
  };

  // `file` is the log, empty or to be replayed; null for a log that stays empty.
  LogStore(const Config& config, std::shared_ptr<File> file);

  uint64_t id() const { return config_.id; }
  unsigned bucket_bits() const { return config_.bucket_bits; }
  const NameHash& name_hash() const { return config_.name_hash; }
  const SlotLayout& layout() const { return config_.layout; }

  StoreFileId file_id() const { return {StoreKind::kLog, config_.partition, config_.id}; }
  // The number of its first page in the partition.
  uint32_t first_page() const { return config_.first_page; }
  // The number, in the partition, of the page that is sealed next.
  uint32_t end_page() const { return config_.first_page + sealed_pages_; }

  // --- Reading ---

  // The slots that may hold a name of this hash; newest first.
  CuckooTable::Candidates Find(uint64_t hash) const { return table_.Find(hash); }
  void Prefetch(uint64_t hash) const { table_.Prefetch(hash); }
  bool InTail(uint32_t slot) const { return layout().PageOf(slot) >= written_pages_; }
  SlotEntry TailEntry(uint32_t slot) const;  // requires InTail(slot)
  const CuckooTable& table() const { return table_; }

  // Written pages are at page * kPageSize of this file; null for an empty log.
  const File* file() const { return file_.get(); }
  // The entry of a slot, if `bytes` are exactly the page that was sealed as page
  // layout().PageOf(slot).
  std::optional<SlotEntry> EntryInPage(uint32_t slot, ConstPageBytes bytes) const;

  // The contents of a whole log, read by ReadAll. A damaged page yields no entries. Entries are
  // addressed by slot number.
  struct Contents {
    Bytes bytes;  // pages as they were sealed, including the page being filled
    uint64_t damaged_pages = 0;
    std::optional<SlotEntry> Entry(uint32_t slot) const;
    std::vector<bool> page_is_damaged;
    SlotLayout layout;
  };
  Result<Contents> ReadAll() const;

  // An empty store with the same file and a table of another size. This store and its file must be
  // empty.
  std::shared_ptr<LogStore> EmptyWith(unsigned bucket_bits) const;
  // True if no entry was ever put into it.
  bool Empty() const { return sealed_pages_ == 0 && open_count_ == 0; }

  // A const copy of the current state, without later writes. Copies the table and the tail.
  std::shared_ptr<const LogStore> Snapshot() const;

  // --- Writing ---

  // Inserts a name that is not in the store, at the end of the tail. Returns false if the table is
  // full; then nothing has changed. If this entry fills its page, `complete` is written into the
  // page's header.
  bool Insert(uint64_t hash, const SlotEntry& entry, uint64_t complete);
  // Appends a new entry of a name that is in the store, as Insert does. The table then leads to the
  // new entry. `old` describes the name's present entry. Returns false if the table has no such
  // entry.
  struct Resident {
    uint32_t slot = 0;
    bool tombstone = false;
  };
  bool Replace(uint64_t hash, const Resident& old, const SlotEntry& entry, uint64_t complete);

  // Seals the page being filled, even an empty one.
  void SealPage(uint64_t complete);
  // Whether the page being filled has entries.
  bool HasOpenEntries() const { return open_count_ > 0; }
  uint32_t sealed_tail_pages() const { return sealed_pages_ - written_pages_; }
  uint32_t sealed_pages() const { return sealed_pages_; }
  // The complete_sequence of the last sealed page; 0 in an empty log.
  uint64_t complete_sequence() const { return complete_sequence_; }
  // Lowers complete_sequence() to `sequence` if it is higher; the pages on flash do not change.
  void LowerCompleteSequence(uint64_t sequence) {
    complete_sequence_ = std::min(complete_sequence_, sequence);
  }

  // Writes the sealed pages of the tail; DropWritten, which is not const, then frees their memory.
  Status WriteOut() const;
  void DropWritten();
  // BeginSync starts the writes of the pages to the device and does not wait (File::BeginSync).
  void BeginSync() const;
  Status Sync() const;

  // --- Replay ---

  struct ReplayResult {
    uint32_t valid_pages = 0;  // pages before the first page that is not as it was sealed
    bool all_valid = false;    // the file has no bytes except these pages
  };
  // Fills an empty store from its file; called once, before any other call. The tail is empty
  // afterwards. kIoError if the file can't be read. `accepts` is called with each entry and the
  // index of its page in the log. If it rejects an entry, the entry's page counts as damaged.
  using Accepts = std::function<bool(uint32_t page, const SlotEntry& entry)>;
  Result<ReplayResult> Replay(const Accepts& accepts = nullptr);

  // --- Statistics ---

  StoreCounters& counters() const { return *counters_; }
  IndexComponentStats Stats() const;

 private:
  LogStore(const LogStore&) = default;
  uint32_t NextSlot() const { return LogSlotNumber(layout(), sealed_pages_, open_count_); }
  ConstPageBytes TailPage(uint32_t page) const;
  PageBytes OpenPage();
  void Append(uint64_t hash, const SlotEntry& entry, uint64_t complete);
  // Bytes past the file's end read as zeros, which no page check accepts.
  Status ReadFile(uint32_t first, MutableByteView out) const;
  Result<bool> ReplayPage(ConstPageBytes bytes, const Accepts& accepts);
  Result<bool> EnterReplayed(uint32_t slot, const SlotEntry& entry);

  const Config config_;
  const std::shared_ptr<File> file_;
  const std::shared_ptr<StoreCounters> counters_;

  CuckooTable table_;
  uint64_t tombstones_ = 0;  // among the table's entries
  // Pages [0, written) are on flash only, [written, sealed) are sealed in the tail, page `sealed`
  // is being filled.
  uint32_t written_pages_ = 0;
  uint32_t sealed_pages_ = 0;
  uint64_t complete_sequence_ = 0;
  size_t open_count_ = 0;  // entries of the page being filled
  Bytes tail_;             // pages from `written` on; without the open page while it is empty
};

}  // namespace siltfs
