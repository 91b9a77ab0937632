#include "index/silt/conversion.h"

#include <optional>

#include "index/silt/hash_store.h"
#include "index/silt/run_store.h"

namespace siltfs {

Result<ConvertedFile> ConvertLog(const LogStore& log, Env& env, const std::string& directory,
                                 const StoreFileId& id, Throttle& throttle,
                                 const ConversionOptions& options) {
  if (options.sorted_runs && log.layout().hashed()) {
    SILTFS_ASSIGN_OR_RETURN(
        auto run, RunStore::WriteFrom(log, env, directory, id, throttle,
                                      {.partition_bits = options.partition_bits,
                                       .runs_per_partition = options.runs_per_partition}));
    if (run) return std::move(*run);
  }
  return HashStore::WriteFrom(log, env, directory, id, throttle);
}

Result<std::shared_ptr<const ConvertedStore>> OpenConverted(Env& env, const std::string& directory,
                                                            const StoreFileId& id,
                                                            unsigned partition_bits,
                                                            const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id, layout));
  if (IsRunStore(file->info())) {
    SILTFS_ASSIGN_OR_RETURN(auto run, RunStore::Of(std::move(file), partition_bits));
    return std::shared_ptr<const ConvertedStore>(std::move(run));
  }
  SILTFS_ASSIGN_OR_RETURN(auto store, HashStore::Of(std::move(file)));
  return std::shared_ptr<const ConvertedStore>(std::move(store));
}

}  // namespace siltfs
