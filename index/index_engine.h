// What an index engine offers: one row of the table of index engines (index/engines.h). mkfs,
// OpenIndex, benchmarks and tests take engines from that table, so most code names no particular
// engine. An engine defines its row in its own folder. docs/extending.md lists the steps.
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

// The numbers are on disk (superblock); never renumber. An engine needs an enumerator only if code
// names the engine. Otherwise the number in its row suffices.
enum class IndexEngine : uint8_t {
  kMap = 0,
  kSilt = 1,
};

struct IndexOptions {
  IndexEngine engine = IndexEngine::kSilt;
  std::string directory;   // must exist; the engine owns every file in it
  bool read_only = false;  // writes nothing, even after a crash; Put and Delete fail with kReadOnly
  uint64_t memory_limit = kNoMemoryLimit;  // ignored by engines that cannot limit memory
  // The values in the superblock. They are used when the index is made; an existing index keeps the
  // values that it was made with.
  EngineParameters parameters = {};
  // Entries are durable when Put returns. Ignored by engines that cannot do this. Not stored.
  bool synchronous = false;
  // Limits the rate at which the engine rewrites its files in the background; 0: no limit. Ignored
  // by engines that rewrite nothing. Not stored.
  uint64_t background_bytes_per_second = 0;
  // False: the engine starts no thread and does all work in the calls, so that tests see the same
  // device calls in the same order in every run.
  bool background = true;
};

// The index for which an engine shall predict its costs.
struct IndexPlanQuestion {
  uint64_t entries = 0;
  EngineParameters parameters = {};
  // Whether the index has a memory limit, as that of a store has. It then writes filters that use
  // the rest of its memory.
  bool limited_memory = true;
};

// The costs that an engine predicts, if it has a model of its costs.
struct IndexCosts {
  double write_amplification = 0;       // bytes written per byte put, while the index grows
  double written_bytes_per_put = 0;     // the same for each entry
  double written_bytes_per_update = 0;  // if puts replace entries, and the index does not grow
  double reads_per_hit = 0;             // flash reads of a lookup that finds its name, on average
  double reads_per_miss = 0;
  // The average number of component stores that wait for a merge (in SILT: the HashStores), in all
  // partitions together.
  double component_stores = 0;
};

struct IndexPlan {
  uint64_t least_memory_bytes = 0;  // used even if the limit is lower; 0: negligible
  double memory_bytes = 0;          // at the peak, without a limit
  double flash_bytes = 0;           // at the peak; 0: not predicted
  std::optional<IndexCosts> costs;
};

// A new index, for which an engine shall choose parameters.
struct IndexChoiceQuestion {
  uint64_t entries = 0;  // expected
  uint64_t memory_limit = 0;
  EngineParameters parameters = {};  // chosen already; valid
};

struct IndexEngineRow {
  IndexEngine number;
  std::string_view name;    // for users, and for IndexStats::engine; IsEngineWord accepts it
  std::string_view remark;  // for --help: a clause that begins with "which", or empty
  std::span<const EngineParameterSpec> parameters;

  // Opens the index as OpenIndex does, with parameters that CheckEngineParameters accepts.
  Result<std::unique_ptr<ChunkIndex>> (*open)(Env& env, const IndexOptions& options);
  // Predicts an index's costs by computation, without device access. kInvalidArgument, with one
  // sentence, for values of parameters that are in their ranges but exclude each other.
  Result<IndexPlan> (*plan)(const IndexPlanQuestion& question);
  // Returns the question's parameters and those that the engine adds, by computation. kUnsupported,
  // with one sentence, if no parameters suit the entries and the memory. Null if the engine's
  // parameters do not depend on these.
  Result<EngineParameters> (*choose)(const IndexChoiceQuestion& question);
};

}  // namespace siltfs
