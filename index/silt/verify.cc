#include "index/silt/verify.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {
namespace {

using Report = std::function<void(const IndexFinding&)>;

class StoreCheck {
 public:
  StoreCheck(std::string path, const VerifyOptions& options, const Report& report)
      : path_(std::move(path)), options_(options), report_(report) {}

  void Page(uint32_t page) {
    Say("page-checksum", page, fmt::format("page {} is not what was written", page));
  }

  // Checks that apply to the entries of every kind of store. Returns the entry's key.
  OrderKey Entry(const SlotEntry& entry, uint64_t slot) {
    const OrderKey key = options_.name_hash.KeyOf(entry);
    if (PartitionOf(key.hash, options_.partition_bits) != options_.partition) {
      Say("entry-partition", options_.layout.PageOf(slot),
          fmt::format("{} in slot {} belongs to another partition", Text(key), slot));
    }
    return key;
  }

  void Place(const OrderKey& key, uint64_t slot) {
    Say("entry-place", options_.layout.PageOf(slot),
        fmt::format("lookups of {} do not find it in slot {}", Text(key), slot));
  }

  void Order(const OrderKey& key, uint64_t slot) {
    Say("entry-order", options_.layout.PageOf(slot),
        fmt::format("{} in slot {} is not behind the entry before it", Text(key), slot));
  }

  // Reports a fault of the filter or page index on flash.
  void Index(const Status& why) {
    report_({.code = "store-index",
             .path = std::string(why.path()),
             .offset = std::nullopt,
             .text = why.ToString()});
  }

  void Counts(uint64_t found, uint64_t should) {
    if (found == should) return;
    report_({.code = "entry-count",
             .path = path_,
             .offset = std::nullopt,
             .text = fmt::format("{} has {} entries and should have {}", path_, found, should)});
  }

 private:
  std::string Text(const OrderKey& key) const {
    return options_.layout.hashed() ? fmt::format("the hash {:016x}", key.hash) : key.name.ToHex();
  }
  void Say(const char* code, uint64_t page, const std::string& what) {
    report_({.code = code,
             .path = path_,
             .offset = page * kPageSize,
             .text = fmt::format("{}: {}", path_, what)});
  }

  const std::string path_;
  const VerifyOptions& options_;
  const Report& report_;
};

Status VerifyLog(const LogStore& log, StoreCheck check) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, log.ReadAll());
  for (uint32_t page = 0; page < contents.page_is_damaged.size(); ++page) {
    if (contents.page_is_damaged[page]) check.Page(page);
  }
  auto slot_is_right = [&](uint32_t slot) {
    const auto entry = contents.Entry(slot);
    if (!entry) return;
    const OrderKey key = check.Entry(*entry, slot);
    const auto candidates = log.Find(key.hash);
    if (std::find(candidates.begin(), candidates.end(), slot) == candidates.end()) {
      check.Place(key, slot);
    }
  };
  log.table().ForEachPlace([&](size_t, uint16_t, uint32_t slot) { slot_is_right(slot); });
  log.table().ForEachStashed([&](const CuckooPlace&, uint32_t slot) { slot_is_right(slot); });
  return Status::Ok();
}

Status VerifyConverted(const ConvertedStore& store, StoreCheck check) {
  const SlotLayout& layout = store.layout();
  auto finds = store.ReadFinder();
  if (!finds.ok()) check.Index(finds.status());
  FrozenFileScan scan(store.file());
  uint64_t found = 0;
  bool damaged = false;
  std::optional<OrderKey> last;
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const auto page, scan.Next());
    if (!page) break;
    if (page->damaged) {
      check.Page(page->number);
      damaged = true;
      continue;
    }
    for (size_t i = 0; i < layout.slots_per_page(); ++i) {
      const auto slot = static_cast<uint32_t>(page->number * layout.slots_per_page() + i);
      const SlotEntry entry = DecodeSlot(SlotOfPage(layout, page->bytes, i));
      if (IsHole(entry)) {
        if (store.sorted()) break;  // readers ignore the rest of the page, too
        continue;
      }
      ++found;
      const OrderKey key = check.Entry(entry, slot);
      if (store.sorted() && last && !(*last < key)) check.Order(key, slot);
      if (finds.ok() && !(*finds)(key.hash, slot)) check.Place(key, slot);
      last = key;
    }
  }
  if (!damaged) check.Counts(found, store.entries());
  return Status::Ok();
}

// Reads all slices; a damaged one and those after it are left out.
RibbonFilter ReadRibbonFilter(const SortedStore& store, StoreCheck check) {
  if (store.filter_damage() != nullptr) check.Index(*store.filter_damage());
  const RibbonFile* const file = store.filter_file();
  if (file == nullptr) return RibbonFilter(RibbonShape{});
  RibbonFilter filter(file->shape());
  for (unsigned number = 0; number < kRibbonSlices; ++number) {
    auto slice = file->ReadSlice(number);
    if (!slice.ok()) {
      check.Index(slice.status());
      break;
    }
    filter = filter.With(std::move(*slice));
  }
  return filter;
}

bool LeadsTo(const PageIndex& index, const OrderKey& key, uint32_t page) {
  const PageBounds::Range pages = index.PagesOf(key);
  return pages.first <= page && page <= pages.last;
}

Status VerifySorted(const SortedStore& store, StoreCheck check) {
  const SlotLayout& layout = store.layout();
  auto index = store.ReadIndex();
  if (!index.ok()) check.Index(index.status());
  const RibbonFilter filter = ReadRibbonFilter(store, check);
  FrozenFileScan scan(store.file());
  uint64_t found = 0;
  bool damaged = false;
  std::optional<OrderKey> last;
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const auto page, scan.Next());
    if (!page) break;
    if (page->damaged) {
      check.Page(page->number);
      damaged = true;
      continue;
    }
    for (size_t i = 0; i < layout.slots_per_page(); ++i) {
      const uint64_t slot = uint64_t{page->number} * layout.slots_per_page() + i;
      const SlotEntry entry = DecodeSlot(SlotOfPage(layout, page->bytes, i));
      if (IsHole(entry)) break;  // readers ignore the rest of the page, too
      ++found;
      const OrderKey key = check.Entry(entry, slot);
      if (last && !(*last < key)) check.Order(key, slot);
      const bool leads_here = !index.ok() || LeadsTo(*index, key, page->number);
      if (!leads_here || !filter.MayContain(key.hash)) check.Place(key, slot);
      last = key;
    }
  }
  if (!damaged) check.Counts(found, store.entries());
  return Status::Ok();
}

}  // namespace

Status VerifyPartition(const PartitionVersion& version, const VerifyOptions& options,
                       const Report& report) {
  for (const auto& log : version.logs) {
    const std::string path = log->file() == nullptr ? std::string() : log->file()->path();
    SILTFS_RETURN_IF_ERROR(VerifyLog(*log, StoreCheck(path, options, report)));
  }
  for (const auto& store : version.hashes) {
    SILTFS_RETURN_IF_ERROR(
        VerifyConverted(*store, StoreCheck(store->file().file().path(), options, report)));
  }
  if (version.sorted == nullptr) return Status::Ok();
  const std::string path = version.sorted->file().file().path();
  return VerifySorted(*version.sorted, StoreCheck(path, options, report));
}

}  // namespace siltfs
