// Finding names in the stores of their partitions, newest store first: the LogStore that is being
// written, frozen ones, HashStores, the SortedStore (SILT, section 2, "Key-Value Operations").
// Filters are asked in memory; what they don't rule out is read, a page at a time. Where a filter
// or trie is not in memory more is read: hash_store.h, sorted_store.h. In a batch each lookup goes
// its own way, and the device has as many reads to do as the queue holds from the batch's beginning
// to its end.
//
// Thread-safety: a Lookup belongs to one thread; what it is asked of is only read.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "index/silt/partition.h"
#include "store/base/aligned_buffer.h"
#include "store/env/env.h"

namespace siltfs {

class Lookup {
 public:
  // `name` must outlive the lookup.
  Lookup(const ChunkName& name, uint64_t hash) : name_(&name), hash_(hash) {}

  // Asks the table and the tail of the active store: under the partition's lock. Pins must outlive
  // the lookup.
  void Begin(const LogStore& active, const PartitionVersion* version);

  // Instead of Begin(): nothing is found.
  void Abandon() { stage_ = Stage::kOver; }

  struct PageRead {
    const File* file;
    uint64_t offset;
  };
  // The page that must be read to go on; nothing when the lookup is over.
  std::optional<PageRead> NextRead();
  // While it waits for a page of a HashStore: further pages that it will ask for unless it finds
  // the name before, in their order, up to `most` and to the SortedStore's first.
  std::vector<PageRead> ReadsToCome(size_t most) const;
  // What was read of it.
  void Take(const Status& status, ConstPageBytes bytes);

  uint64_t hash() const { return hash_; }
  // Nothing as long as nothing was found. May be a tombstone.
  const std::optional<IndexEntry>& found() const { return found_; }
  // What its slot holds behind name and location.
  ByteView found_rest() const { return found_rest_; }
  // Where in the active store, if it was there.
  std::optional<uint32_t> active_slot() const {
    return found_ && stage_ == Stage::kActive ? std::optional(slot_) : std::nullopt;
  }
  uint32_t pages_read() const { return pages_read_; }
  // Pages of logs that were damaged, and slots that were empty since a log's page was: what they
  // held counts as absent.
  uint32_t damaged_pages() const { return damaged_pages_; }
  // kCorruption, and where the first of them is. damaged_pages() > 0.
  Status Damage() const;
  // Not OK: a page could not be read, so that nothing is known.
  const Status& status() const { return status_; }

 private:
  enum class Stage : uint8_t { kActive, kLogs, kHashes, kSorted, kOver };

  // Moves on to an older store and its candidates.
  void NextStore();
  void FindCandidates();
  const LogStore& Log() const {
    return stage_ == Stage::kActive ? *active_ : *version_->logs[older_];
  }
  std::optional<SlotEntry> EntryInPage(ConstPageBytes bytes);
  StoreCounters& Counters() const;
  void Find(const SlotEntry& entry);
  PageRead CurrentPage() const;
  void NoteDamage();

  const ChunkName* name_;
  uint64_t hash_;
  const LogStore* active_ = nullptr;
  const PartitionVersion* version_ = nullptr;  // null: only the active store is asked
  Stage stage_ = Stage::kActive;
  size_t older_ = 0;  // stores of this stage that are older than the one being asked
  CuckooTable::Candidates candidates_;
  size_t next_ = 0;
  bool by_page_ = false;  // the candidates are pages, not slots
  SortedSearch search_;   // of a SortedStore without a trie; gives the candidates one by one
  uint32_t slot_ = 0;     // being read, or the page
  std::optional<IndexEntry> found_;
  Bytes found_rest_;
  uint32_t pages_read_ = 0;
  uint32_t damaged_pages_ = 0;
  PageRead damaged_{};  // the first
  Status status_;
};

// Ends a lookup with one read after the other.
void FinishLookup(Lookup& lookup);

// What a batch of lookups reads with: a queue, and pages for twice as many reads as its depth: one
// half is at the device while the other is looked at.
struct LookupReader {
  std::unique_ptr<ReadQueue> queue;
  AlignedBuffer pages;
};

// Lookups that are made when their turn comes, so that a batch of any size has as many of them as
// the reader has pages, and a few that are next.
class LookupBatch {
 public:
  virtual ~LookupBatch() = default;
  virtual size_t size() const = 0;
  // Makes the i-th lookup; in order. Brings what it will touch first into the processor's cache.
  virtual Lookup Prepare(size_t i) = 0;
  // Its Begin(), soon after.
  virtual void Begin(Lookup& lookup) = 0;
  // It is over. In any order.
  virtual void End(size_t i, const Lookup& lookup) = 0;
};

// Runs all lookups, each read into one of the reader's pages.
void RunLookups(LookupBatch& batch, LookupReader& reader);

}  // namespace siltfs
