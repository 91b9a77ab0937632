// A store that is being repaired: what its parts share. The caller holds the store's lock.
#pragma once

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
    for (const auto& [known, record] : records.segments) {
      if (known == id) return &record;
    }
    return nullptr;
  }
};

}  // namespace siltfs
