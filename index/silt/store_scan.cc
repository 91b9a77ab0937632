#include "index/silt/store_scan.h"

#include <algorithm>

namespace siltfs {
namespace {

class StoreScan {
 public:
  StoreScan(const StoreList& stores, uint64_t hash_secret,
            const std::function<Status(const IndexEntry&)>& visit)
      : stores_(stores), hash_secret_(hash_secret), visit_(visit) {}

  LookupsResult Run() {
    for (size_t s = stores_.size(); s-- > 0 && result_.status.ok();) {
      result_.status = ScanStore(s);
    }
    return std::move(result_);
  }

 private:
  Status ScanStore(size_t s) {
    // The newest slot of each name in this store, in the order of the log.
    std::vector<uint32_t> live = stores_[s]->LiveSlots();
    std::sort(live.begin(), live.end());
    auto next = live.begin();
    return stores_[s]->ForEachPage([&](uint32_t page, const std::optional<LogPageHeader>& header,
                                       ConstLogPageBytes bytes) -> Status {
      const auto end = std::lower_bound(next, live.end(), LogSlotNumber(page + 1, 0));
      const std::span<const uint32_t> slots(next, end);
      next = end;
      if (slots.empty()) return Status::Ok();
      if (!header) {
        result_.damaged_pages.emplace_back(stores_[s]->id(), page);
        return Status::Ok();
      }
      std::vector<IndexEntry> entries;
      for (uint32_t slot : slots) {
        const IndexEntry entry = DecodeLogSlot(bytes, LogIndexOfSlot(slot));
        if (!IsTombstone(entry)) entries.push_back(entry);
      }
      return VisitUnlessNewer(entries, s);
    });
  }

  // Of these entries of store `s`, those whose name is in no newer store.
  Status VisitUnlessNewer(std::span<const IndexEntry> entries, size_t s) {
    std::vector<Lookup> lookups;
    lookups.reserve(entries.size());
    for (const IndexEntry& entry : entries) {
      lookups.emplace_back(entry.name, LogStore::HashOf(entry.name, hash_secret_));
    }
    LookupsResult newer = FinishLookups(lookups, stores_, s + 1, stores_.size());
    result_.pages_read += newer.pages_read;
    result_.damaged_pages.insert(result_.damaged_pages.end(), newer.damaged_pages.begin(),
                                 newer.damaged_pages.end());
    SILTFS_RETURN_IF_ERROR(std::move(newer.status));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (!lookups[i].found()) SILTFS_RETURN_IF_ERROR(visit_(entries[i]));
    }
    return Status::Ok();
  }

  const StoreList& stores_;
  const uint64_t hash_secret_;
  const std::function<Status(const IndexEntry&)>& visit_;
  LookupsResult result_;
};

}  // namespace

LookupsResult ScanStores(const StoreList& stores, uint64_t hash_secret,
                         const std::function<Status(const IndexEntry&)>& visit) {
  return StoreScan(stores, hash_secret, visit).Run();
}

}  // namespace siltfs
