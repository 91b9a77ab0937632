// The directory for what a measurement sorts in files (fs/mark/reference_sorter.h).
#pragma once

#include <string>
#include <utility>

#include "fs/inodes/store_context.h"
#include "fs/mark/reference_sorter.h"
#include "store/env/files.h"
#include "store/env/process.h"

namespace siltfs {

// Calls `sort` with the path of a directory for files without names, and returns its result. The
// directory is `name` in the store. If the store is read-only, or `sort` fails with kNoSpace there,
// `sort` is called with the directory for temporary files. Only one call at a time may use `name`.
template <typename Sort>
auto SortInStore(const StoreContext& store, const char* name, const Sort& sort) {
  if (!store.options().read_only) {
    const std::string directory = JoinPath(store.options().store, name);
    auto sorted = sort(directory);
    ReferenceSorter::RemoveLeftovers(store.env(), directory)
        .IgnoreError("there are some only after a crash");
    store.env().RemoveDirectory(directory).IgnoreError("it was not needed");
    if (!sorted.status().Is(StatusCode::kNoSpace)) return sorted;
    std::move(sorted).status().IgnoreError("another disk may have room");
  }
  return sort(TemporaryDirectory());
}

}  // namespace siltfs
