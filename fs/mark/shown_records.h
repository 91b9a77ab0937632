// Visits the records of a table in all lineages, with the snapshots that show them.
//
// Thread-safety: one thread. Errors, memory and cost: those of fs/versions/shown_values.h, and
// those of the pacer. An error of kCorruption gets the inode that the record belongs to.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/mark/reference_walk.h"
#include "fs/records/schema.h"
#include "fs/versions/shown_values.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

// `snapshots`: all those that are not being removed, of all lineages, ascending. ShownBy counts by
// their places; the live files come after all of them. Records of a transfer that has not made its
// snapshot count as live. Visits the live lineage first, and each lineage in the order of its keys.
Status ForEachShownRecord(const KvSnapshot& metadata, Table table,
                          const std::vector<SnapshotBounds>& snapshots, Pacer& pacer,
                          const std::function<Status(std::string_view key, std::string_view value,
                                                     const ShownBy& shown)>& visit);

}  // namespace siltfs
