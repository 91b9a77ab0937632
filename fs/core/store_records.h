// What metadata says of a store as a whole, for who opens one.
//
// Thread-safety: any thread. Errors: kCorruption for what is no such record, or where metadata is
// older than it must be; the key-value store's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/dedup/segment_recovery.h"
#include "fs/meta/damage_record.h"
#include "fs/meta/garbage_record.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/scrub_record.h"
#include "fs/meta/segment_record.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct StoreRecords {
  uint64_t last_commit = 0;
  uint64_t collisions = 0;
  GarbageRecord garbage;
  std::vector<DamagedBlock> damage;
  std::optional<ScrubRecord> scrub;  // that has not ended
  IdRanges ids;
  SegmentRecords segments;
  SegmentRecords replacements;     // intents (fs/dedup/segment_replacement.h)
  std::vector<SegmentId> removed;  // whose files may still be there
  std::vector<SegmentId> secondary;  // that may hold secondary copies
  std::vector<SegmentId> condemned;  // of these, that were being collected
  bool notes_kept = false;           // of such segments, ever since
};

Result<StoreRecords> ReadStoreRecords(const KvStore& kv);

// I5: both superblock copies tell a commit that metadata must have.
Status CheckCommit(const SuperblockState& state, uint64_t last_commit, const std::string& store);

}  // namespace siltfs
