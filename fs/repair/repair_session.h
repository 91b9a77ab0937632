// State of a store under repair, shared by the parts of the repair. The caller holds the store's
// lock.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "fs/open/store_records.h"
#include "store/env/env.h"
#include "store/segment/segment_format.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct RepairSession {
  Env& env;
  std::string store;  // path
  SegmentStore& segments;
  bool all = false;  // whether to also make repairs that lose data or need a choice
  Superblock superblock;
  std::unique_ptr<KvStore> kv;  // open for writing
  StoreRecords records;         // include the changes of the current repair

  SegmentIdentity Identity(SegmentId id) const { return {superblock.uuid, id}; }
  // Null if metadata has no record of the segment.
  const SegmentRecord* RecordOf(SegmentId id) const {
    const auto& known = records.segments;  // ascending
    const auto at = std::lower_bound(
        known.begin(), known.end(), id,
        [](const auto& numbered, SegmentId wanted) { return numbered.first < wanted; });
    return at != known.end() && at->first == id ? &at->second : nullptr;
  }
};

}  // namespace siltfs
