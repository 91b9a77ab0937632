// Visits the values of records together with the snapshots that show them.
//
// The snapshots that show a value follow each other, because a value that is replaced does not come
// back (version_key.h). So the first and the last one describe all of them. Snapshots are counted
// by their places in the list of all snapshots; the place behind the last snapshot stands for the
// live files.
//
// Thread-safety: one thread. Errors: those of the key-value store and of `visit`; kCorruption for a
// malformed version. Memory: two values. Cost: one walk over the records and one over their
// versions, both in the order of keys.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

// The snapshots that show a value, by their places in a list of snapshots, from 0.
struct ShownBy {
  size_t first = 0;
  size_t last = 0;  // the number of snapshots if the live files have the value
};

// Visits each value in [begin, end), a range of versioned keys (IsVersionedKey) of one lineage,
// that a snapshot of the list or the present state shows. `snapshots`: those of the lineage,
// ascending.
Status ForEachShownValue(const KvSnapshot& metadata, std::string_view begin, std::string_view end,
                         const std::vector<SnapshotBounds>& snapshots,
                         const std::function<Status(std::string_view key, std::string_view value,
                                                    const ShownBy& shown)>& visit);

}  // namespace siltfs
