// Stores of SILT outside of an index, each built alone and with its building timed, for
// siltfs-bench stores.
//
// Errors: throws BenchFailure. Thread-safety: one thread builds; afterwards any number of threads
// may read. Ownership: borrows the Env, which must outlive the stores.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/flash/throttle.h"
#include "index/silt/log_store.h"
#include "index/silt/partition.h"
#include "store/env/env.h"
#include "tools/bench/index_keys.h"

namespace siltfs {

// A version with one store, and the numbers of the names in it.
struct OneStore {
  PartitionVersion version;
  uint64_t first = 0;
  uint64_t count = 0;
};
using OneStores = std::vector<std::unique_ptr<OneStore>>;

struct Built {
  double seconds = 0;
  uint64_t entries = 0;
};

class SingleStores {
 public:
  SingleStores(Env& env, std::string directory, uint64_t entries, unsigned bucket_bits,
               uint64_t seed);

  const IndexKeys& keys() const { return keys_; }
  const NameHash& name_hash() const { return name_hash_; }
  const OneStores& logs() const { return logs_; }

  // Fills LogStores one after another, each until it refuses an entry.
  Built MakeLogs();
  // Converts every LogStore into a HashStore or a sorted run.
  Built Convert(bool sorted_runs, OneStores& stores);
  // Merges converted stores into a SortedStore of the other entries. The entries are all in one
  // partition, so the converted stores are merged a share at a time, as in an index. Only the last
  // share is timed.
  Built Merge(const OneStores& stores, OneStore& merged);

 private:
  std::shared_ptr<LogStore> NewLog();
  bool Insert(LogStore& log, const IndexEntry& entry);
  Built MergeInto(const OneStores& stores, size_t begin, size_t end, size_t sort_memory,
                  OneStore& merged);

  Env& env_;
  const std::string directory_;
  const uint64_t entries_;
  const unsigned bucket_bits_;
  const IndexKeys keys_;
  const NameHash name_hash_{0x5117f5};
  Throttle throttle_;
  uint64_t next_id_ = 1;
  OneStores logs_;
};

}  // namespace siltfs
