// Converts LogStores into HashStores or sorted runs, and opens either kind.
//
// Functions only, safe to call from any thread.
#pragma once

#include <memory>
#include <string>

#include "index/silt/converted_store.h"
#include "index/silt/log_store.h"

namespace siltfs {

struct ConversionOptions {
  // Sorted runs need hashed slots; a log with named slots becomes a HashStore in any case.
  bool sorted_runs = false;
  unsigned partition_bits = 0;
  double runs_per_partition = 0;  // that lookups search, on average
};

// Writes the file of a store with all entries in the table of `log`, which must be frozen. The
// caller syncs it. Memory: the log's pages, and 29 bytes for each entry of a sorted run
// (memory_plan.cc).
Result<ConvertedFile> ConvertLog(const LogStore& log, Env& env, const std::string& directory,
                                 const StoreFileId& id, Throttle& throttle,
                                 const ConversionOptions& options);

// Opens a store without its filter. kCorruption, kNotFound or kIoError.
Result<std::shared_ptr<const ConvertedStore>> OpenConverted(Env& env, const std::string& directory,
                                                            const StoreFileId& id,
                                                            unsigned partition_bits,
                                                            const SlotLayout& layout);

}  // namespace siltfs
