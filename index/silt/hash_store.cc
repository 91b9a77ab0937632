#include "index/silt/hash_store.h"

#include <algorithm>

namespace siltfs {
namespace {

// Stands for a free place in the result of SlotsInTableOrder.
constexpr uint32_t kFree = UINT32_MAX;

// Returns the slots of the log in the order of its table, followed by the slots of the stash.
std::vector<uint32_t> SlotsInTableOrder(const CuckooTable& table) {
  std::vector<uint32_t> slots(table.capacity(), kFree);
  table.ForEachPlace([&](size_t place, uint16_t, uint32_t slot) { slots[place] = slot; });
  table.ForEachStashed([&](const CuckooPlace&, uint32_t slot) { slots.push_back(slot); });
  return slots;
}

}  // namespace

Result<ConvertedFile> HashStore::WriteFrom(const LogStore& log, Env& env,
                                           const std::string& directory, const StoreFileId& id,
                                           Throttle& throttle) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, log.ReadAll());
  SILTFS_ASSIGN_OR_RETURN(auto writer,
                          FrozenFileWriter::Create(env, directory, id, throttle, log.layout()));
  FrozenFileInfo info;
  info.bucket_bits = log.bucket_bits();
  for (const uint32_t slot : SlotsInTableOrder(log.table())) {
    // Entries of a damaged page are left empty: the filter's tag then leads to a slot of zeros.
    const auto entry = slot == kFree ? std::nullopt : contents.Entry(slot);
    SILTFS_RETURN_IF_ERROR(entry ? writer->Append(*entry) : writer->AppendEmpty());
    if (!entry) continue;
    ++info.entries;
    if (IsTombstone(*entry)) ++info.tombstones;
  }
  const std::string filter = CuckooFilter(log.table()).Encode();
  SILTFS_RETURN_IF_ERROR(writer->Finish(info, AsBytes(filter)));
  return ConvertedFile{.file = std::move(writer), .damaged_pages = contents.damaged_pages};
}

Result<std::shared_ptr<const HashStore>> HashStore::Of(std::shared_ptr<const FrozenFile> file) {
  const SlotLayout& layout = file->layout();
  const FrozenFileInfo& info = file->info();
  const auto wrong = [&](const char* what) {
    return Status(StatusCode::kCorruption, what).At(file->file().path());
  };
  if (info.bucket_bits < 1 || info.bucket_bits > kMaxBucketBits) {
    return wrong("has an invalid number of buckets");
  }
  // A filter has one tag per place and a few stashed ones; the pages hold the same slots.
  const uint64_t slots = uint64_t{info.pages} * layout.slots_per_page();
  const uint64_t most = (kBucketWays << info.bucket_bits) + CuckooTable::kStashSize;
  if (slots < (kBucketWays << info.bucket_bits) || slots >= most + layout.slots_per_page()) {
    return wrong("has a filter for another number of slots");
  }
  if (info.payload_bytes > file->MostPayloadBytes())
    return wrong("has a filter of an invalid size");
  return std::shared_ptr<const HashStore>(
      new HashStore(std::move(file), std::nullopt, std::make_shared<StoreCounters>()));
}

Result<std::shared_ptr<const HashStore>> HashStore::Open(Env& env, const std::string& directory,
                                                         const StoreFileId& id,
                                                         const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id, layout));
  SILTFS_ASSIGN_OR_RETURN(const auto bare, Of(std::move(file)));
  SILTFS_ASSIGN_OR_RETURN(CuckooFilter filter, bare->ReadFilter());
  return std::shared_ptr<const HashStore>(
      new HashStore(bare->file_, std::move(filter), bare->counters_));
}

Result<CuckooFilter> HashStore::ReadFilter() const {
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file_->ReadPayload(file_->MostPayloadBytes()));
  auto filter = CuckooFilter::Decode(file_->info().bucket_bits, payload);
  if (!filter.ok()) return std::move(filter).status().At(file_->file().path());
  if (file_->info().pages != layout().PagesFor(filter->slots())) {
    return Status(StatusCode::kCorruption, "has a filter for another number of slots")
        .At(file_->file().path());
  }
  return filter;
}

Result<std::shared_ptr<const ConvertedStore>> HashStore::WithFilter() const {
  SILTFS_ASSIGN_OR_RETURN(CuckooFilter filter, ReadFilter());
  return std::shared_ptr<const ConvertedStore>(new HashStore(file_, std::move(filter), counters_));
}

std::shared_ptr<const ConvertedStore> HashStore::WithoutFilter() const {
  return std::shared_ptr<const ConvertedStore>(new HashStore(file_, std::nullopt, counters_));
}

Result<ConvertedStore::Finder> HashStore::ReadFinder() const {
  SILTFS_ASSIGN_OR_RETURN(CuckooFilter filter, ReadFilter());
  return Finder([filter = std::move(filter)](uint64_t hash, uint32_t slot) {
    return filter.Finds(hash, slot);
  });
}

ConvertedStore::Places HashStore::PlacesOf(uint64_t hash) const {
  if (filter_) return {.candidates = filter_->Find(hash), .are_pages = false};
  return {.candidates = PagesOf(hash), .are_pages = true};
}

CuckooTable::Candidates HashStore::PagesOf(uint64_t hash) const {
  const CuckooPlace place = CuckooPlaceOf(hash, file_->info().bucket_bits);
  CuckooTable::Candidates pages;
  const auto add = [&](size_t slot) {
    const uint32_t page = layout().PageOf(slot);
    if (std::find(pages.begin(), pages.end(), page) == pages.end()) pages.Add(page);
  };
  const auto add_slots = [&](size_t first, size_t end) {
    for (size_t slot = first; slot < end; ++slot) add(slot);
  };
  for (const size_t bucket : place.buckets) {
    add_slots(bucket * kBucketWays, (bucket + 1) * kBucketWays);
  }
  // Stashed entries lie behind the places.
  add_slots(places(), file_->info().pages * layout().slots_per_page());
  return pages;
}

IndexComponentStats HashStore::Stats() const {
  IndexComponentStats stats = FileStats();
  stats.memory_bytes = filter_ ? filter_->memory_bytes() : 0;
  stats.occupancy = static_cast<double>(entries()) / static_cast<double>(places());
  return stats;
}

}  // namespace siltfs
