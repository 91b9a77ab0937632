// The metadata of one lineage (fs/records/lineage.h), as if it were that of a store of its own.
//
// In the tables of inodes the view shows only the records of the lineage, and with keys without the
// lineage. It shows all other tables as they are. The view of lineage 0 shows the live files
// without the records of received snapshots.
//
// Thread-safety and errors: as in kv_store.h. Ownership: shares `metadata`. Cost: as of `metadata`,
// and a copy of each key.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/records/lineage.h"

namespace siltfs {

std::shared_ptr<const KvSnapshot> MakeLineageView(std::shared_ptr<const KvSnapshot> metadata,
                                                  LineageNumber lineage);

// The lineages, but the live files, of which there are records of inodes. Cost: a seek for each.
Result<std::set<LineageNumber>> FindLineages(const KvSnapshot& metadata);

// The key, which is one of a view, as it is in the metadata. Keys of other tables do not change.
std::string KeyInLineage(std::string_view key, LineageNumber lineage);
// The opposite.
std::string KeyWithoutLineage(std::string_view key);

}  // namespace siltfs
