// A store that is being repaired: what its parts share. The caller holds the store's lock.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "fs/core/store_records.h"
#include "fs/meta/kv_store.h"
#include "store/env/env.h"
#include "store/segment/segment_format.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct RepairSession {
  Env& env;
  std::string store;  // path
  bool all = false;   // also what loses something, or needs a choice
  Superblock superblock;
  std::unique_ptr<KvStore> kv;  // open for writing
  StoreRecords records;         // as they are, or shall be with what is being done

  SegmentIdentity Identity(SegmentId id) const { return {superblock.uuid, id}; }
  // Null if metadata does not know the segment.
  const SegmentRecord* RecordOf(SegmentId id) const {
    const auto& known = records.segments;  // ascending
    const auto at = std::lower_bound(
        known.begin(), known.end(), id,
        [](const auto& numbered, SegmentId wanted) { return numbered.first < wanted; });
    return at != known.end() && at->first == id ? &at->second : nullptr;
  }
};

}  // namespace siltfs
