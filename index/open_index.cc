#include "index/open_index.h"

#include <fmt/format.h>

#include "index/engines.h"

namespace siltfs {

Result<std::unique_ptr<ChunkIndex>> OpenIndex(Env& env, const IndexOptions& options) {
  const IndexEngineRow* const row = FindIndexEngine(options.engine);
  if (row == nullptr) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("is kept by index engine {}, which this version does not know",
                              static_cast<int>(options.engine)))
        .At(options.directory);
  }
  // mkfs has checked the parameters. So if they are invalid here, another version of siltfs made
  // the store.
  const Status known = CheckEngineParameters(row->name, row->parameters, options.parameters);
  if (!known.ok()) {
    return Status(
               StatusCode::kNeedsNewer,
               fmt::format("was made by a version with other index parameters: {}", known.cause()))
        .At(options.directory);
  }
  return row->open(env, options);
}

}  // namespace siltfs
