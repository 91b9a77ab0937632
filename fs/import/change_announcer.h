// Tells the kernel what an import has changed, as far as the kernel may know it.
//
// The kernel knows the names in a directory only if it knows the directory. So an import into
// directories that no program has looked at since the mount tells the kernel almost nothing.
//
// Order: a call follows the change. If the kernel sees the directory for the first time after the
// change, it sees the new state. Not thread-safe: one object per thread. Ownership: borrows its
// arguments.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "fs/interface/entry_store.h"
#include "fs/interface/kernel_cache.h"

namespace siltfs {

class ChangeAnnouncer {
 public:
  ChangeAnnouncer(const EntryStore& entries, KernelCache& cache)
      : entries_(entries), cache_(cache) {}

  // A name was made, replaced (`replaced` had it) or removed (as well).
  void NameChanged(InodeNumber parent, std::string_view name, InodeNumber replaced);
  void AttributesChanged(InodeNumber inode);
  // Tells the rest: directories in which several names have changed are told once. Call it before
  // the client gets the answer.
  void Flush();

 private:
  const EntryStore& entries_;
  KernelCache& cache_;
  std::set<InodeNumber> directories_;
};

}  // namespace siltfs
