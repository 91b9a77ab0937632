// What an index engine offers: one row of the table of index engines (index/engines.h). mkfs,
// OpenIndex, benchmarks and tests take engines from that table and know none by itself. An engine
// defines its row in its own folder. docs/extending.md lists the steps.
//
// Plain values, safe to use from any thread. Units: bytes, entries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "index/chunk_index.h"
#include "store/base/engine_parameter.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// The numbers are on disk (superblock); never renumber. An engine that no code names needs no
// enumerator: its row's number suffices.
enum class IndexEngine : uint8_t {
  kMap = 0,
  kSilt = 1,
};

struct IndexOptions {
  IndexEngine engine = IndexEngine::kSilt;
  std::string directory;   // must exist; the engine owns every file in it
  bool read_only = false;  // writes nothing, even after a crash; Put and Delete fail with kReadOnly
  uint64_t memory_limit = kNoMemoryLimit;  // ignored by engines without a limit
  // From the superblock. For a new index; an existing one keeps its values.
  EngineParameters parameters = {};
  // False: the engine starts no thread and does all work in the calls, so that tests see the same
  // device calls in the same order in every run.
  bool background = true;
};

// The index for which an engine shall predict its costs.
struct IndexPlanQuestion {
  uint64_t entries = 0;
  EngineParameters parameters = {};
};

// Costs of an engine that has a model of them.
struct IndexCosts {
  double write_amplification = 0;  // bytes written per byte put
  double reads_per_hit = 0;        // flash reads of a lookup that finds its name, on average
  double reads_per_miss = 0;
  double component_stores = 0;  // that a lookup may have to ask; all partitions together
};

struct IndexPlan {
  uint64_t least_memory_bytes = 0;  // taken at any memory limit; 0: none worth a warning
  double memory_bytes = 0;          // at the peak, without a limit
  std::optional<IndexCosts> costs;
};

struct IndexEngineRow {
  IndexEngine number;
  std::string_view name;    // for people and in IndexStats::engine; an IsEngineWord
  std::string_view remark;  // what a user should know, as "which ..." or empty; for --help
  std::span<const EngineParameterSpec> parameters;

  // Opens the index as OpenIndex does, with parameters that CheckEngineParameters accepts.
  Result<std::unique_ptr<ChunkIndex>> (*open)(Env& env, const IndexOptions& options);
  // Predicts an index's costs; computation only. kInvalidArgument, with one sentence, for values of
  // parameters that are in their ranges but do not go together.
  Result<IndexPlan> (*plan)(const IndexPlanQuestion& question);
};

}  // namespace siltfs
