#include "index/open_index.h"

#include <fmt/format.h>

#include "index/map/map_index.h"
#include "index/silt/silt_index.h"

namespace siltfs {

Result<std::unique_ptr<ChunkIndex>> OpenIndex(Env& env, const IndexOptions& options) {
  switch (options.engine) {
    case IndexEngine::kMap:
      return OpenMapIndex(env, {.directory = options.directory, .read_only = options.read_only});
    case IndexEngine::kSilt:
      return OpenSiltIndex(env, {.directory = options.directory,
                                 .read_only = options.read_only,
                                 .hash_secret = std::nullopt,
                                 .memory_limit = options.memory_limit});
  }
  return Status(StatusCode::kNeedsNewer,
                fmt::format("is kept by index engine {}, which this version does not know",
                            static_cast<int>(options.engine)))
      .At(options.directory);
}

}  // namespace siltfs
