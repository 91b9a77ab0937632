#include "index/silt/silt_maintenance.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/silt/conversion.h"
#include "store/env/page_allocator.h"

namespace siltfs {
namespace {

constexpr size_t kConversionsAtOnce = 8;  // at most, installed by writing one manifest
// Put waits when the HashStores hold more than this multiple of their share of the entries. With 64
// partitions the excess is about the number of entries that one merge moves to a SortedStore. So
// the next merge can begin before Put must wait.
constexpr double kMostShare = 1.05;
// After this many entries, a merge checks whether there are logs to convert, and whether to stop.
constexpr uint64_t kEntriesBetweenLooks = 1U << 15;

}  // namespace

Maintenance::Maintenance(StoreSet& stores)
    : stores_(stores),
      residency_(stores),
      throttle_(stores.env(), stores.options().background_bytes_per_second),
      steps_(stores.options().background, [this] { return Step(); }) {}

Maintenance::~Maintenance() { Stop(); }

void Maintenance::Stop() {
  // The step must know that it is to end when the throttle no longer delays it.
  steps_.BeginStop();
  throttle_.Open();
  steps_.Stop();
}

void Maintenance::Wake() {
  if (!stores_.options().background) {
    while (residency_.LoadSome()) continue;
    return;
  }
  steps_.Wake();
}

void Maintenance::FitMemory() {
  residency_.Drop();
  ReleaseFreePages();
  Wake();
}

void Maintenance::SetGone(std::function<bool(SegmentId)> gone) {
  MutexLock lock(mutex_);
  gone_ = std::move(gone);
}

std::function<bool(SegmentId)> Maintenance::gone() const {
  MutexLock lock(mutex_);
  return gone_;
}

// --- Waiting for steps ---

Status Maintenance::WaitForRoom() {
  if (!stores_.options().background) return steps_.RunAll();
  if (HasRoom()) return failure();
  return steps_.WaitUntil([this] { return HasRoom(); });
}

Status Maintenance::Rewrite(uint32_t partition) {
  Status rewritten = steps_.WaitUntil([this] { return !to_rewrite(); },
                                      [this, partition] {
                                        MutexLock lock(mutex_);
                                        rewrite_ = RewriteRequest{partition, ++rewrites_};
                                      });
  MutexLock lock(mutex_);
  rewrite_.reset();  // after kNoSpace the caller requests it again
  return rewritten;
}

std::optional<Maintenance::RewriteRequest> Maintenance::to_rewrite() const {
  MutexLock lock(mutex_);
  return rewrite_;
}

bool Maintenance::HasRoom() const {
  const SiltIndexOptions& options = stores_.options();
  if (stores_.frozen_logs() >= stores_.memory_plan().max_frozen_logs) return false;
  const StoreSet::Sizes sizes = stores_.GetSizes();
  const size_t most_stores = size_t{options.max_hash_stores} + options.max_hash_stores / 4;
  if (sizes.most_stores > most_stores) return false;
  const auto all = static_cast<double>(sizes.hash_entries + sizes.sorted_entries);
  const double share = std::min(1.0, stores_.Share(sizes) * kMostShare);
  // In a small index, even two HashStores per partition may exceed the share. Put does not wait
  // then.
  return sizes.most_stores <= 2 || static_cast<double>(sizes.hash_entries) <= share * all;
}

bool Maintenance::WantsMerge(const StoreSet::Sizes& sizes) const {
  const SiltIndexOptions& options = stores_.options();
  if (sizes.most_stores > options.max_hash_stores) return true;
  if (sizes.most_unfiltered > stores_.memory_plan().max_unfiltered_stores) return true;
  const auto all = static_cast<double>(sizes.hash_entries + sizes.sorted_entries);
  return static_cast<double>(sizes.hash_entries) > stores_.Share(sizes) * all;
}

// A filter takes 1.11 bytes of each entry on flash. It is of use only if memory has room for a part
// of it (residency.h).
bool Maintenance::WantsFilter() const {
  if (stores_.options().sorted_filters) return *stores_.options().sorted_filters;
  const StoreSet::Sizes sizes = stores_.GetSizes();
  return stores_.WantsSortedFilters(sizes) &&
         sizes.wanted_bytes + sizes.stores * kStoreBytes < stores_.memory_plan().index_bytes;
}

Result<bool> Maintenance::Step() {
  SILTFS_RETURN_IF_ERROR(stores_.Recover());
  const bool loaded = residency_.LoadSome();
  if (stores_.options().read_only) return loaded;
  // Load everything before the next merge. A merge takes as long as loading everything, and lookups
  // are slow until everything is loaded.
  auto worked = loaded && stores_.options().background ? Convert() : ConvertOrMerge();
  if (!worked.ok() && loaded && worked.status().Is(StatusCode::kNoSpace)) {
    worked.status().IgnoreError("it is retried when everything is loaded");
    return true;
  }
  if (!worked.ok()) return worked;
  return *worked || loaded;
}

Result<bool> Maintenance::ConvertOrMerge() {
  // A rewrite must cover the logs that were frozen before it was requested. So the request is read
  // before Convert looks for logs.
  const auto rewrite = to_rewrite();
  SILTFS_ASSIGN_OR_RETURN(const bool converted, Convert());
  if (converted) return true;
  if (rewrite) {
    SILTFS_RETURN_IF_ERROR(MergeIfAny(rewrite->partition));
    MutexLock lock(mutex_);
    // Keep a newer request. The caller may have abandoned this one, because an earlier step failed
    // with kNoSpace, and made another.
    if (rewrite_ && rewrite_->number == rewrite->number) rewrite_.reset();
    return true;
  }
  const StoreSet::Sizes sizes = stores_.GetSizes();
  if (!WantsMerge(sizes)) return false;
  const bool too_long = sizes.most_stores > stores_.options().max_hash_stores;
  const bool too_slow = sizes.most_unfiltered > stores_.memory_plan().max_unfiltered_stores;
  SILTFS_RETURN_IF_ERROR(Merge(static_cast<uint32_t>(too_long   ? sizes.longest
                                                     : too_slow ? sizes.unfiltered
                                                                : sizes.fullest)));
  return true;
}

Status Maintenance::CheckNotStopped() const {
  return steps_.stopping() ? Status(StatusCode::kIoError, "the index is being closed")
                           : Status::Ok();
}

// If entries are not hints (entry_owner.h), stores with damaged pages are not replaced. A new store
// would hide the loss, and lookups would find older entries.
Status Maintenance::CheckWhole(uint64_t damaged_pages) const {
  if (damaged_pages == 0 || !stores_.needs_all_entries()) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format(
                    "has {} damaged pages, and is not merged because their entries would be lost",
                    damaged_pages))
      .At(stores_.options().directory);
}

// --- LogStore to HashStore ---

Result<bool> Maintenance::Convert() {
  if (stores_.frozen_logs() == 0) return false;
  std::vector<StoreSet::Conversion> conversions;
  std::vector<std::unique_ptr<FrozenFileWriter>> files;
  const ConversionOptions options{
      .sorted_runs = stores_.options().sorted_runs,
      .partition_bits = stores_.partition_bits(),
      .runs_per_partition = stores_.RunsPerPartition(stores_.GetSizes())};
  for (size_t p = 0; p < stores_.partition_count() && conversions.size() < kConversionsAtOnce;
       ++p) {
    const auto version = stores_.partition(p).Get().version;
    if (version->logs.empty()) continue;
    SILTFS_RETURN_IF_ERROR(CheckNotStopped());
    const StoreFileId file{StoreKind::kHash, static_cast<uint32_t>(p), stores_.NewId()};
    // The writer removes a file that is not synced.
    SILTFS_ASSIGN_OR_RETURN(
        auto written, ConvertLog(*version->logs.front(), stores_.env(), stores_.options().directory,
                                 file, throttle_, options));
    SILTFS_RETURN_IF_ERROR(CheckWhole(written.damaged_pages));
    conversions.push_back(
        {.log = version->logs.front(), .hash_file = file, .damaged_pages = written.damaged_pages});
    files.push_back(std::move(written.file));
  }
  if (conversions.empty()) return false;
  // All files are written before the first is synced, so that the device gets them together.
  for (const auto& file : files) {
    Status synced = file->Sync();
    if (synced.ok()) continue;
    stores_.Discard(conversions);
    return synced;
  }
  Status installed = stores_.InstallHashStores(conversions);
  residency_.Drop();
  SILTFS_RETURN_IF_ERROR(installed);
  conversions_ += conversions.size();
  steps_.NotifyWaiting();  // for WaitForRoom
  return true;
}

// --- HashStores to SortedStore ---

Status Maintenance::Merge(uint32_t partition) {
  const auto pinned = stores_.partition(partition).Get().version;
  PartitionVersion version = *pinned;
  version.logs.clear();  // frozen logs are newer and are not merged yet
  merging_ = true;
  auto merged = WriteSorted(partition, version);
  merging_ = false;
  SILTFS_RETURN_IF_ERROR(merged.status());
  for (const auto& store : version.hashes) merged->hash_ids.push_back(store->file_id().id);
  Status installed = stores_.InstallSortedStore(*merged);
  residency_.Drop();
  SILTFS_RETURN_IF_ERROR(installed);
  ++merges_;
  return Status::Ok();
}

Status Maintenance::MergeIfAny(uint32_t partition) {
  const auto version = stores_.partition(partition).Get().version;
  if (version->hashes.empty() && version->sorted == nullptr) return Status::Ok();
  return Merge(partition);
}

Result<StoreSet::Merge> Maintenance::WriteSorted(uint32_t partition,
                                                 const PartitionVersion& version) {
  const SiltIndexOptions& options = stores_.options();
  const StoreFileId file{StoreKind::kSorted, partition, stores_.NewId()};
  SILTFS_ASSIGN_OR_RETURN(auto writer,
                          SortedStoreWriter::Create(
                              stores_.env(), options.directory, file,
                              {.partition_bits = stores_.partition_bits(),
                               .expected_entries = version.HashEntries() + version.SortedEntries(),
                               .layout = stores_.layout(),
                               .page_index = options.page_index,
                               .filter = WantsFilter()},
                              throttle_));
  EntryMerge merge(version, {.name_hash = stores_.name_hash(),
                             .partition_bits = stores_.partition_bits(),
                             .partition = partition,
                             .sort_memory_bytes = stores_.memory_plan().sort_memory_bytes,
                             .layout = stores_.layout()});
  const auto is_gone = gone();
  uint64_t until_look = kEntriesBetweenLooks;
  const auto write = [&](const OrderKey& key, const SlotEntry& entry) -> Status {
    if (!is_gone || !is_gone(entry.location.segment)) {
      SILTFS_RETURN_IF_ERROR(writer->Append(key, entry));
    }
    if (--until_look > 0) return Status::Ok();
    until_look = kEntriesBetweenLooks;
    SILTFS_RETURN_IF_ERROR(CheckNotStopped());
    return Convert().status();
  };
  SILTFS_RETURN_IF_ERROR(merge.Run(write));
  StoreSet::Merge merged;
  merged.partition = partition;
  merged.damaged_pages = merge.damaged_pages();
  SILTFS_RETURN_IF_ERROR(CheckWhole(merged.damaged_pages));
  if (writer->entries() == 0) return merged;  // the writer removes its file
  SILTFS_RETURN_IF_ERROR(writer->Finish());
  merged.sorted_id = file.id;
  return merged;
}

uint64_t Maintenance::memory_bytes() const {
  return merging_ ? stores_.memory_plan().sort_memory_bytes : 0;
}

}  // namespace siltfs
