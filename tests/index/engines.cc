#include "engines.h"

#include <fmt/format.h>

#include "index/bloom_store/bloom_store_engine.h"
#include "index/buffer_hash/buffer_hash_engine.h"
#include "index/engines.h"
#include "index/flash/flash_index.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "index/slice_hash/slice_hash_engine.h"
#include "wide_index.h"

namespace siltfs::testing {
namespace {

// An engine of the table with its default parameters.
Engine Default(const IndexEngineRow& row) {
  return {std::string(row.name), [&row](Env& env, const std::string& directory, bool read_only) {
            return OpenIndex(
                env, {.engine = row.number, .directory = directory, .read_only = read_only});
          }};
}

// An engine of the table with the least value of each parameter, which makes a small index. Without
// background work, its device calls have a fixed order.
Engine Least(const IndexEngineRow& row) {
  EngineParameters parameters;
  for (const EngineParameterSpec& spec : row.parameters)
    parameters.push_back({std::string(spec.name), spec.least});
  return {fmt::format("{} with the least parameters", row.name),
          [&row, parameters](Env& env, const std::string& directory, bool read_only) {
            return OpenIndex(env, {.engine = row.number,
                                   .directory = directory,
                                   .read_only = read_only,
                                   .parameters = parameters,
                                   .background = false});
          },
          /*makes_room=*/row.number != IndexEngine::kMap && row.number != IndexEngine::kSilt};
}

// A SILT index with tiny tables, so that a few entries keep conversions and merges running. These
// run in the background, or within Put so that device calls have a fixed order.
Engine TinySilt(std::string name, unsigned partition_bits, unsigned bucket_bits, uint32_t log_pages,
                uint32_t batch_pages, bool background, uint64_t memory_limit = kNoMemoryLimit,
                bool serve_early = false, PageIndexKind page_index = PageIndexKind::kBounds,
                bool sorted_runs = false) {
  return {std::move(name), [=](Env& env, const std::string& directory, bool read_only) {
            return OpenSiltIndex(env, {.directory = directory,
                                       .read_only = read_only,
                                       .partition_bits = partition_bits,
                                       .bucket_bits = bucket_bits,
                                       .hash_secret = std::nullopt,
                                       .max_log_pages = log_pages,
                                       .write_batch_pages = batch_pages,
                                       .max_hash_stores = 3,
                                       // A merge of runs has room for a page of each.
                                       .sort_memory_bytes = sorted_runs ? 20'000U : 2000U,
                                       .page_index = page_index,
                                       .sorted_runs = sorted_runs,
                                       .background = background,
                                       .memory_limit = memory_limit,
                                       .serve_early = serve_early});
          }};
}

// Like TinySilt, but with slots larger than name and location need.
Engine WideSilt(std::string name, unsigned slot_bits, unsigned partition_bits, unsigned bucket_bits,
                bool background, uint64_t memory_limit = kNoMemoryLimit) {
  return {std::move(name), [=](Env& env, const std::string& directory, bool read_only) {
            return OpenWideIndex(env, {.directory = directory,
                                       .read_only = read_only,
                                       .partition_bits = partition_bits,
                                       .bucket_bits = bucket_bits,
                                       .layout = SlotLayout::Named(slot_bits),
                                       .hash_secret = std::nullopt,
                                       .max_log_pages = 16,
                                       .write_batch_pages = 2,
                                       .max_hash_stores = 3,
                                       .sort_memory_bytes = 20'000,
                                       .background = background,
                                       .memory_limit = memory_limit});
          }};
}

// An engine with page files, so small that buffers are written, partitions split, checkpoints made,
// logs of puts replaced and files cleaned all the time.
using MakeFlashEngine = std::unique_ptr<FlashEngine> (*)(const EngineParameters&);
Engine TinyFlash(std::string name, MakeFlashEngine make, const EngineParameters& parameters,
                 unsigned partition_bits, uint64_t memory_limit = kNoMemoryLimit) {
  return {std::move(name),
          [=](Env& env, const std::string& directory, bool read_only) {
            return OpenFlashIndex(env,
                                  {.directory = directory,
                                   .read_only = read_only,
                                   .partition_bits = partition_bits,
                                   .hash_secret = std::nullopt,
                                   .memory_limit = memory_limit,
                                   .read_depth = 4,
                                   .pages_per_checkpoint = 6,
                                   .least_log_pages = 2,
                                   .least_dead_pages = 4,
                                   .most_pages_per_file = 8},
                                  make(parameters));
          },
          /*makes_room=*/true};
}

std::vector<Engine> TinyBloomStores() {
  return {TinyFlash("bloom_store, chains of 3 pages, records of 64 bytes", MakeBloomStoreEngine,
                    {{"chain_length", 3},
                     {"filter_bytes", 64},
                     {"buffered_filters", 2},
                     {"record_bytes", 64}},
                    1),
          TinyFlash("bloom_store without memory, with prefilters", MakeBloomStoreEngine,
                    {{"chain_length", 4}, {"buffered_filters", 3}, {"prefilter_bits", 8}}, 2, 0),
          TinyFlash("bloom_store without memory for its chains", MakeBloomStoreEngine,
                    {{"chain_length", 6},
                     {"filter_bytes", 80},
                     {"buffered_filters", 1},
                     {"prefilter_bits", 4},
                     {"record_bytes", 64}},
                    0, kLeastFlashMemory + 30'000)};
}

std::vector<Engine> TinySkimpyStashes() {
  return {
      TinyFlash("skimpy_stash, partitions of 32, buckets of 2", MakeSkimpyStashEngine,
                {{"capacity_bits", 5}, {"entries_per_bucket", 2}, {"garbage", 1}}, 1),
      TinyFlash("skimpy_stash with chains that are collected", MakeSkimpyStashEngine,
                {{"capacity_bits", 6}, {"entries_per_bucket", 4}, {"garbage", 2}}, 0),
      TinyFlash(
          "skimpy_stash without memory, records of 64 bytes", MakeSkimpyStashEngine,
          {{"capacity_bits", 6}, {"entries_per_bucket", 8}, {"garbage", 1}, {"record_bytes", 64}},
          1, 0)};
}

std::vector<Engine> TinySliceHashes() {
  return {
      TinyFlash("slice_hash, tables of 4", MakeSliceHashEngine,
                {{"table_bits", 0}, {"incarnations", 51}}, 1),
      TinyFlash("slice_hash without memory, records of 64 bytes", MakeSliceHashEngine,
                {{"table_bits", 1}, {"incarnations", 21}, {"filter_bits", 8}, {"record_bytes", 64}},
                0, 0),
      TinyFlash("slice_hash with filters, on 2 devices", MakeSliceHashEngine,
                {{"table_bits", 2},
                 {"incarnations", 31},
                 {"filter_bits", 10},
                 {"record_bytes", 64},
                 {"channels", 3},
                 {"chunk_pages", 1},
                 {"directories", 2}},
                1),
      TinyFlash("slice_hash, each partition on 3 devices", MakeSliceHashEngine,
                {{"table_bits", 0},
                 {"incarnations", 21},
                 {"record_bytes", 64},
                 {"directories", 3},
                 {"spread", 1}},
                0)};
}

std::vector<Engine> TinyBufferHashes() {
  return {TinyFlash("buffer_hash, tables of 16, 3 incarnations", MakeBufferHashEngine,
                    {{"table_bits", 2}, {"incarnations", 3}}, 1),
          TinyFlash("buffer_hash without memory, records of 64 bytes", MakeBufferHashEngine,
                    {{"table_bits", 3}, {"incarnations", 8}, {"record_bytes", 64}}, 0, 0)};
}

}  // namespace

const std::vector<Engine>& Engines() {
  static const std::vector<Engine> engines = [] {
    std::vector<Engine> all;
    for (const IndexEngineRow* row : IndexEngines()) all.push_back(Least(*row));
    all.insert(all.end(), {TinySilt("silt, 2 partitions, tables of 16", 1, 2, 8, 1, false),
                           TinySilt("silt, tables of 8", 0, 1, 8, 1, false),
                           TinySilt("silt, tables of 512, logs of 3 pages", 0, 7, 3, 2, false),
                           TinySilt("silt with tries", 1, 2, 8, 1, false, kNoMemoryLimit, false,
                                    PageIndexKind::kTrie),
                           TinySilt("silt without filters", 1, 2, 8, 1, false, 0),
                           TinySilt("silt without filters and tries", 1, 2, 8, 1, false, 0, false,
                                    PageIndexKind::kTrie),
                           TinySilt("silt that serves before it was recovered", 2, 2, 8, 1, false,
                                    kNoMemoryLimit, true),
                           TinySilt("silt with sorted runs", 1, 2, 8, 1, false, kNoMemoryLimit,
                                    false, PageIndexKind::kBounds, true),
                           TinySilt("silt with sorted runs, without filters", 1, 5, 8, 1, false, 0,
                                    false, PageIndexKind::kBounds, true),
                           WideSilt("silt with slots of 64 bytes", 6, 1, 2, false),
                           WideSilt("silt with slots of 512 bytes, without filters and tries", 9, 0,
                                    2, false, 0)});
    for (const auto& tiny :
         {TinyBufferHashes(), TinySliceHashes(), TinyBloomStores(), TinySkimpyStashes()}) {
      all.insert(all.end(), tiny.begin(), tiny.end());
    }
    return all;
  }();
  return engines;
}

const std::vector<Engine>& AllEngines() {
  static const std::vector<Engine> engines = [] {
    std::vector<Engine> all = Engines();
    for (const IndexEngineRow* row : IndexEngines()) all.push_back(Default(*row));
    all.push_back(TinySilt("silt in the background, tables of 16", 1, 2, 8, 1, true));
    all.push_back(TinySilt("silt in the background, tables of 128", 2, 5, 8, 2, true));
    all.push_back(TinySilt("silt in the background, without memory", 2, 5, 8, 2, true, 0, true));
    all.push_back(TinySilt("silt in the background, with sorted runs", 2, 5, 8, 2, true,
                           kNoMemoryLimit, false, PageIndexKind::kBounds, true));
    all.push_back(WideSilt("silt in the background, with slots of 512 bytes", 9, 1, 4, true));
    return all;
  }();
  return engines;
}

}  // namespace siltfs::testing
