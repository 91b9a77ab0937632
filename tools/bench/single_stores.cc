#include "tools/bench/single_stores.h"

#include <algorithm>
#include <utility>

#include "index/flash/store_files.h"
#include "index/silt/conversion.h"
#include "index/silt/entry_merge.h"
#include "index/silt/silt_options.h"
#include "index/silt/sorted_store.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

constexpr uint32_t kBatchPages = 3;
// Each merge reads this share of its entries from converted stores, as in an index at rest.
constexpr double kMergedShare = 0.073;
constexpr double kRunsPerPartition = 19;
constexpr size_t kBaseSortMemory = 256U << 20;

void WriteOut(LogStore& log) {
  Require(log.WriteOut());
  log.DropWritten();
}

}  // namespace

SingleStores::SingleStores(Env& env, std::string directory, uint64_t entries, unsigned bucket_bits,
                           uint64_t seed)
    : env_(env),
      directory_(std::move(directory)),
      entries_(entries),
      bucket_bits_(bucket_bits),
      keys_(MixNumber(seed)),
      throttle_(env, 0) {}

Built SingleStores::MakeLogs() {
  const Stopwatch building;
  for (uint64_t put = 0; put < entries_;) {
    const auto log = NewLog();
    const uint64_t first = put;
    while (put < entries_ && Insert(*log, keys_.EntryOf(put))) ++put;
    if (put == first) throw BenchFailure("stores: an empty LogStore refused an entry");
    if (log->HasOpenEntries()) log->SealPage(0);
    WriteOut(*log);
    Require(log->Sync());
    auto store = std::make_unique<OneStore>();
    store->version.logs = {log};
    store->first = first;
    store->count = put - first;
    logs_.push_back(std::move(store));
  }
  return {.seconds = building.seconds(), .entries = entries_};
}

Built SingleStores::Convert(bool sorted_runs, OneStores& stores) {
  const ConversionOptions options{
      .sorted_runs = sorted_runs, .partition_bits = 0, .runs_per_partition = kRunsPerPartition};
  const Stopwatch building;
  for (const auto& log : logs_) {
    const StoreFileId id{StoreKind::kHash, 0, next_id_++};
    auto written = ConvertLog(*log->version.logs.front(), env_, directory_, id, throttle_, options);
    Require(written.status());
    Require(written->file->Sync());
    auto opened = OpenConverted(env_, directory_, id, 0, kChunkSlots);
    Require(opened.status());
    auto filtered = (*opened)->WithFilter();
    Require(filtered.status());
    auto store = std::make_unique<OneStore>();
    store->version.hashes = {std::move(*filtered)};
    store->first = log->first;
    store->count = log->count;
    stores.push_back(std::move(store));
  }
  return {.seconds = building.seconds(), .entries = entries_};
}

Built SingleStores::Merge(const OneStores& stores, OneStore& merged) {
  const auto later =
      std::max<size_t>(1, static_cast<size_t>(kMergedShare * static_cast<double>(stores.size())));
  const size_t base = stores.size() - later;
  MergeInto(stores, 0, base, kBaseSortMemory, merged);
  return MergeInto(stores, base, stores.size(), SiltIndexOptions{}.sort_memory_bytes, merged);
}

std::shared_ptr<LogStore> SingleStores::NewLog() {
  const StoreFileId id{StoreKind::kLog, 0, next_id_++};
  auto file = CreateStoreFile(env_, directory_, id);
  Require(file.status());
  return std::make_shared<LogStore>(
      LogStore::Config{
          .id = id.id, .bucket_bits = bucket_bits_, .name_hash = name_hash_, .layout = kChunkSlots},
      *file);
}

bool SingleStores::Insert(LogStore& log, const IndexEntry& entry) {
  if (log.sealed_tail_pages() >= kBatchPages) WriteOut(log);
  return log.Insert(name_hash_.Of(entry.name), entry, 0);
}

Built SingleStores::MergeInto(const OneStores& stores, size_t begin, size_t end, size_t sort_memory,
                              OneStore& merged) {
  PartitionVersion inputs;
  inputs.sorted = merged.version.sorted;
  uint64_t count = merged.count;
  for (size_t i = begin; i < end; ++i) {
    inputs.hashes.push_back(stores[i]->version.hashes.front());
    count += stores[i]->count;
  }
  const StoreFileId id{StoreKind::kSorted, 0, next_id_++};
  const Stopwatch merging;
  auto writer = SortedStoreWriter::Create(
      env_, directory_, id, {.expected_entries = count, .layout = kChunkSlots}, throttle_);
  Require(writer.status());
  EntryMerge merge(
      inputs, {.name_hash = name_hash_, .sort_memory_bytes = sort_memory, .layout = kChunkSlots});
  Require(merge.Run(
      [&](const OrderKey& key, const SlotEntry& entry) { return (*writer)->Append(key, entry); }));
  Require((*writer)->Finish());
  auto opened = SortedStore::Open(env_, directory_, id, 0);
  Require(opened.status());
  const double seconds = merging.seconds();
  if ((*opened)->entries() != count) throw BenchFailure("stores: a merge lost entries");
  merged.version.sorted = std::move(*opened);
  merged.count = count;
  return {.seconds = seconds, .entries = count};
}

}  // namespace siltfs
