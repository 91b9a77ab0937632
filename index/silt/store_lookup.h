// Finding names in a row of stores, newest first: the batched lookup of SILT (section 2, "Key-Value
// Operations"). The tables are asked for all names of a batch before any flash is read; then the
// candidates of all names are read together; whose candidate was another name goes on with the next
// candidate or older stores.
//
// Thread-safety: a Lookup belongs to one thread; the stores are only read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/silt/log_store.h"
#include "index/silt/slot_reads.h"

namespace siltfs {

using StoreList = std::vector<std::shared_ptr<const LogStore>>;  // oldest first

class Lookup {
 public:
  // `name` must outlive the lookup.
  Lookup(const ChunkName& name, uint64_t hash) : name_(&name), hash_(hash) {}

  struct Found {
    IndexEntry entry;  // may be a tombstone
    uint32_t slot = 0;
  };
  // What was found; nothing as long as nothing was.
  const std::optional<Found>& found() const { return found_; }

  uint64_t hash() const { return hash_; }
  void Prefetch(const LogStore& store) const { store.Prefetch(hash_); }

  // Asks the table and the tail of `store`, which must outlive the candidates it leaves. Only if
  // neither done() nor waiting().
  void Probe(const LogStore& store);

  bool done() const { return done_; }
  // Has a candidate that must be read.
  bool waiting() const { return !done_ && next_ < candidates_.size(); }
  SlotRead NextRead() const { return {.store = store_, .slot = candidates_[next_]}; }
  void Take(const SlotRead& read);

 private:
  const ChunkName* name_;
  uint64_t hash_;
  bool done_ = false;
  std::optional<Found> found_;
  const LogStore* store_ = nullptr;
  CuckooTable::Candidates candidates_;
  size_t next_ = 0;
};

struct LookupsResult {
  uint64_t pages_read = 0;
  std::vector<std::pair<uint64_t, uint32_t>>
      damaged_pages;  // log id, page; what they held counts as absent
  Status status;      // kIoError; lookups whose candidates could not be read have found nothing
};

// Finishes lookups, some of which may be waiting on a newer store, by stores[end - 1], ...,
// stores[begin].
LookupsResult FinishLookups(std::span<Lookup> lookups, const StoreList& stores, size_t begin,
                            size_t end);

}  // namespace siltfs
