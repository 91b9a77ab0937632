#include "engines.h"

#include <fmt/format.h>

#include "index/engines.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
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
          }};
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
