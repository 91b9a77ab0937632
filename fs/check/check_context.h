// What the parts of a check share: the options, what was found, and what the store says of itself.
//
// Thread-safety: Report, Progress, Continue and Count at any time; the rest is set before threads
// are there.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/dedup/segment_set.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/thread_annotations.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_format.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class CheckContext {
 public:
  CheckContext(Env& environment, const CheckOptions& check_options);

  const std::string& store() const { return options.store; }
  SegmentIdentity Identity(SegmentId id) const { return {superblock.uuid, id}; }
  const SegmentRecord* RecordOf(SegmentId id) const;
  // Metadata says that the last mount for writing was ended by an unmount.
  bool clean() const { return records_known && ids.clean; }

  void Report(Finding finding) SILTFS_EXCLUDES(mutex_);
  // That the index does not find chunks of a segment is a fault only where something refers to such
  // ones: of what is stored twice, and dead, it knows one place, and forgets it with its segment.
  // Held back until that is known. Where segments were never noted for secondary copies, the next
  // mount makes all entries that are missing (ChunkStore::BeginNotes).
  void HoldBack(Finding not_indexed) SILTFS_EXCLUDES(mutex_);
  // Whether the next mount makes entries of the index for the block's chunks if it has none: a crash
  // may have taken them. `index` must be open.
  bool IsReplayed(const BlockHead& head) const {
    return !clean() &&
           (head.sequence > index->durable_sequence() || condemned.Contains(head.segment));
  }
  void NoteReferenceNotIndexed() { reference_not_indexed_ = true; }
  // Reports what was held back, if there is such a reference, or nobody `knows`.
  void ReportHeldBack(bool knows) SILTFS_EXCLUDES(mutex_);
  // Of a failure: its path and offset.
  void Report(std::string code, const Status& failure) SILTFS_EXCLUDES(mutex_);
  void Progress(const CheckProgress& progress) SILTFS_EXCLUDES(mutex_);
  // kInterrupted if the check is to end.
  Status Continue() const;
  // Changes the report's counts.
  template <typename Change>
  void Count(const Change& change) SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    change(report_);
  }
  CheckReport report() const SILTFS_EXCLUDES(mutex_);

  // Chunks whose bytes are known to be damaged, as far as they are known by name; a bounded number
  // of them.
  void AddDamaged(const ChunkName& name) SILTFS_EXCLUDES(mutex_);
  bool IsDamaged(const ChunkName& name) const SILTFS_EXCLUDES(mutex_);

  // How many chunks a segment was found to have; 0 for one that is not there.
  void SetChunksIn(SegmentId id, uint32_t chunks) SILTFS_EXCLUDES(mutex_);
  uint32_t ChunksIn(SegmentId id) const SILTFS_EXCLUDES(mutex_);

  Env& env;
  const CheckOptions& options;
  Superblock superblock;
  uint64_t highest_commit = 0;  // that a superblock knows of

  // What metadata says of the store as a whole; null if it cannot be opened.
  std::unique_ptr<KvStore> metadata;
  bool records_known = false;  // the following are what metadata says
  uint64_t last_commit = 0;
  IdRanges ids;
  std::map<SegmentId, SegmentRecord> segments;
  SegmentSet secondary;            // that may hold secondary copies
  SegmentSet condemned;            // of these, that were being collected
  bool notes_kept = false;         // of such segments
  std::vector<SegmentId> removed;  // ascending; their files may still be there, and are nothing

  std::unique_ptr<ChunkIndex> index;  // null if it cannot be opened

 private:
  static constexpr size_t kMostDamagedNames = 1u << 16;

  mutable Mutex mutex_;  // held while the caller's functions run
  CheckReport report_ SILTFS_GUARDED_BY(mutex_);
  std::unordered_set<ChunkName> damaged_ SILTFS_GUARDED_BY(mutex_);
  std::map<SegmentId, uint32_t> chunks_in_ SILTFS_GUARDED_BY(mutex_);
  std::vector<Finding> held_back_ SILTFS_GUARDED_BY(mutex_);
  std::atomic<bool> reference_not_indexed_{false};
  int64_t last_progress_ SILTFS_GUARDED_BY(mutex_) = 0;
};

// Whether a check of the rest may go on after this failure, which then is a finding.
bool IsDamage(const Status& status);

}  // namespace siltfs
