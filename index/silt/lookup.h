// Finds names in the stores of their partitions, newest store first (SILT, section 2, "Key-Value
// Operations"): in the LogStore that is being written, in frozen LogStores, in HashStores, and in
// the SortedStore. Filters in memory rule out most pages; a lookup reads the other pages, one at a
// time. Without a filter or trie in memory, a lookup reads more pages (hash_store.h,
// sorted_store.h). Batches and single lookups run as lookup_batch.h and read_ahead.h describe.
//
// Thread-safety: a Lookup belongs to one thread; it only reads the stores.
#pragma once

#include <optional>
#include <vector>

#include "index/flash/lookup_batch.h"
#include "index/silt/partition.h"
#include "store/env/env.h"

namespace siltfs {

class Lookup {
 public:
  explicit Lookup(const OrderKey& key) : key_(key) {}

  // Searches the table and the tail of the active store; call under the partition's lock. `version`
  // must stay alive until the lookup has ended. If it is null, only the active store is searched.
  void Begin(const LogStore& active, const PartitionVersion* version);

  // Called instead of Begin(). The lookup then finds nothing.
  void Abandon() { stage_ = Stage::kOver; }

  // Returns the page that must be read next, or nothing if the lookup has ended.
  std::optional<PageRead> NextRead();
  // Returns, in order, at most `most` pages that the lookup will need next unless it finds the name
  // earlier. The first page of the SortedStore is the last of them, because later pages depend on
  // its contents. Call this while the lookup waits for a page of a HashStore.
  std::vector<PageRead> ReadsToCome(size_t most) const;
  // Passes in the page that was read.
  void Take(const Status& status, ConstPageBytes bytes);

  uint64_t hash() const { return key_.hash; }
  // Empty until an entry was found. May be a tombstone.
  const std::optional<IndexEntry>& found() const { return found_; }
  // The bytes after name and location in the slot of the found entry.
  ByteView found_rest() const { return found_rest_; }
  // The slot of the found entry in the active store, if it was found there.
  std::optional<uint32_t> active_slot() const {
    return found_ && stage_ == Stage::kActive ? std::optional(slot_) : std::nullopt;
  }
  uint32_t pages_read() const { return pages_read_; }
  // Call once when the lookup has ended: adds it to the tally of the version.
  void CountProbes() const {
    if (version_ != nullptr && searched_ > 0) {
      version_->tally.Count(searched_, version_->StoreCount());
    }
  }
  // Number of pages that this lookup has read and found damaged, and of HashStore slots that are
  // empty because a log's page was damaged. Their entries count as absent.
  uint32_t damaged_pages() const { return damaged_pages_; }
  // kCorruption with the place of the first damaged page. Requires damaged_pages() > 0.
  Status Damage() const;
  // Not OK if a page could not be read; then the result is unknown.
  const Status& status() const { return status_; }

 private:
  enum class Stage : uint8_t { kActive, kLogs, kHashes, kSorted, kOver };

  // Moves to the next older store and its candidates.
  void NextStore();
  void FindCandidates();
  const LogStore& Log() const {
    return stage_ == Stage::kActive ? *active_ : *version_->logs[older_];
  }
  std::optional<SlotEntry> EntryInPage(ConstPageBytes bytes);
  // The frozen file of this stage; null if the store is a log.
  const FrozenFile* Frozen() const;
  bool FindsBySearch(ConstPageBytes bytes, bool damaged);
  StoreCounters& Counters() const;
  void Find(const SlotEntry& entry);
  PageRead CurrentPage() const;
  void NoteDamage();

  OrderKey key_;
  const LogStore* active_ = nullptr;
  const PartitionVersion* version_ = nullptr;  // null: only the active store is searched
  Stage stage_ = Stage::kActive;
  size_t older_ = 0;     // stores of this stage that are older than the current one
  size_t searched_ = 0;  // stores of the version that were searched, the current one included
  CuckooTable::Candidates candidates_;
  size_t next_ = 0;
  bool by_page_ = false;   // the candidates are pages, not slots
  bool searches_ = false;  // the candidates come from search_, one by one
  SortedSearch search_;    // of a SortedStore without an index
  uint32_t slot_ = 0;      // the slot being read; the page if by_page_
  std::optional<IndexEntry> found_;
  Bytes found_rest_;
  uint32_t pages_read_ = 0;
  uint32_t damaged_pages_ = 0;
  PageRead damaged_{};  // the first damaged page
  Status status_;
};

// Whether FinishLookupAhead is faster than FinishLookup, which needs no reader.
bool WantsReadAhead(const PartitionVersion& version);

}  // namespace siltfs
