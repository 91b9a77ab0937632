// The map engine's row in the table of engines.
#include "index/map/map_index.h"

namespace siltfs {
namespace {

constexpr double kBytesPerEntry = 80;  // map_index.h

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenMapIndex(env, {.directory = options.directory, .read_only = options.read_only});
}

// The engine predicts no costs, because the bytes written depend on how often the index is flushed.
Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  return IndexPlan{.least_memory_bytes = 0,
                   .memory_bytes = kBytesPerEntry * static_cast<double>(question.entries),
                   .costs = std::nullopt};
}

}  // namespace

constinit const IndexEngineRow kMapIndexEngine = {.number = IndexEngine::kMap,
                                                  .name = "map",
                                                  .remark = "which keeps all entries in memory",
                                                  .parameters = {},
                                                  .open = Open,
                                                  .plan = Plan,
                                                  .choose = nullptr};

}  // namespace siltfs
