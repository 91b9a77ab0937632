// What the kernel may know of records that the writer has changed, and must forget.
//
// The kernel may get an answer from the old state just before the new one is shown, and cache it
// just after it was told to forget. So it is told a second time, some seconds later (Again).
//
// Not thread-safe. Memory: the changed names and inodes that the kernel has looked up and not
// forgotten.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fs/inodes/lookup_counts.h"
#include "fs/interface/kernel_cache.h"
#include "fs/kv/kv_store.h"
#include "fs/records/schema.h"

namespace siltfs {

class KernelChanges {
 public:
  // `lookups`: what the kernel knows. Must outlive the changes.
  explicit KernelChanges(const LookupCounts& lookups) : lookups_(lookups) {}

  // The record with this key was changed.
  void Add(std::string_view key);
  // Everything may have changed. `before`: the records that were shown.
  Status AddAll(const KvSnapshot& before);
  // The list of snapshots has changed; these names were added or removed.
  void AddSnapshots(const std::vector<std::string>& names);

  // Tells the kernel to forget. Call it when the new state is shown.
  void Tell(KernelCache& cache);
  // Repeats what the last Tell has told, once.
  void Again(KernelCache& cache);
  void Clear();

 private:
  struct Changes {
    std::set<uint64_t> inodes;
    std::vector<NamePlace> names;
    void Tell(KernelCache& cache) const;
  };
  bool IsKnown(uint64_t inode) const;

  const LookupCounts& lookups_;
  Changes changes_;
  Changes told_;
};

}  // namespace siltfs
