// The records in metadata that describe a store as a whole. They are read when the store is opened.
//
// Thread-safety: any thread. Errors: kCorruption for a malformed record, or if metadata is older
// than it must be; errors of the key-value store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/damage_record.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/former_segments.h"
#include "fs/records/garbage_record.h"
#include "fs/records/scrub_record.h"
#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct StoreRecords {
  uint64_t last_commit = 0;
  uint64_t collisions = 0;
  EpochFloors floors;
  FormerSegments former;
  GarbageRecord garbage;
  std::vector<DamagedBlock> damage;
  uint64_t found_damaged_blocks = 0;  // of `damage`, while the store was opened
  std::optional<ScrubRecord> scrub;   // an unfinished scrub
  IdRanges ids;
  SegmentRecords segments;
  SegmentRecords replacements;       // intents (fs/recovery/segment_replacement.h)
  std::vector<SegmentId> removed;    // their files may still exist
  std::vector<SegmentId> secondary;  // they may hold secondary copies
  std::vector<SegmentId> victims;    // those of `secondary` to be compared with the index
  bool notes_kept = false;           // whether `secondary` is complete
};

Result<StoreRecords> ReadStoreRecords(const KvStore& kv);

// kCorruption if a superblock copy names a later commit than metadata's last one (I5 in
// docs/crash-model.md).
Status CheckCommit(const SuperblockState& state, uint64_t last_commit, const std::string& store);

}  // namespace siltfs
