// State shared by the parts of a check: the options, the findings, and the store's metadata
// records.
//
// Thread-safety: the methods may be called from any thread. The public fields are set before
// threads are started.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/kv/kv_store.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/former_segments.h"
#include "fs/records/hidden_range.h"
#include "fs/records/segment_record.h"
#include "fs/segments/segment_set.h"
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
  // Whether the segment belongs to no state of the store, and the next mount removes it: its
  // removal is recorded, or a fenced writer has put it.
  bool IsLeftover(SegmentId id) const;
  // Whether the last writable mount ended with an unmount, according to metadata; false if that is
  // unknown.
  bool clean() const { return records_known && ids.clean; }

  void Report(Finding finding) SILTFS_EXCLUDES(mutex_);
  // Passes the following findings to `taker` instead; empty: reports them again. Only while one
  // thread uses the context.
  void Divert(std::function<void(Finding)> taker) { taker_ = std::move(taker); }
  // Defers the finding that the index has no entry for some chunks of a segment; see
  // ReportHeldBack. A missing entry is a fault only if a file refers to the chunk. A dead chunk may
  // lack an entry for this reason: if it is stored twice, the index leads to only one copy, and
  // drops the entry when the segment of this copy is removed. If segments were never noted for
  // secondary copies, the next mount adds all missing entries (fs/chunks/index_comparison.h).
  void HoldBack(Finding not_indexed) SILTFS_EXCLUDES(mutex_);
  // Whether the next mount replays the block. The replay adds index entries of the block's chunks
  // again if a crash has lost them. `index` must be open.
  bool IsReplayed(const BlockHead& head) const {
    return !clean() &&
           (head.sequence > index->durable_sequence() || victims.Contains(head.segment));
  }
  // Whether the index has one entry for both names, which differ (ChunkIndex::OrderOf). It then
  // leads to one of the chunks, and a search finds the other one; that is no damage. `index` must
  // be open.
  bool ShareEntry(const ChunkName& a, const ChunkName& b) const {
    return a != b && index->OrderOf(a) == index->OrderOf(b);
  }
  void NoteReferenceNotIndexed() { reference_not_indexed_ = true; }
  // Reports the deferred findings if NoteReferenceNotIndexed was called, or if not all references
  // could be read (`knows` is false). Reports none if, according to metadata, the store never noted
  // segments for secondary copies.
  void ReportHeldBack(bool knows) SILTFS_EXCLUDES(mutex_);
  // Reports `failure` as a finding with this code, and with the failure's path, offset and cause.
  void Report(std::string code, const Status& failure) SILTFS_EXCLUDES(mutex_);
  void Progress(const CheckProgress& progress) SILTFS_EXCLUDES(mutex_);
  // Returns kInterrupted if the check must end, otherwise OK.
  Status Continue() const;
  // Changes the report's counts.
  template <typename Change>
  void Count(const Change& change) SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    change(report_);
  }
  CheckReport report() const SILTFS_EXCLUDES(mutex_);

  // Records the name of a damaged chunk; only the first kMostDamagedNames names are kept.
  void AddDamaged(const ChunkName& name) SILTFS_EXCLUDES(mutex_);
  bool IsDamaged(const ChunkName& name) const SILTFS_EXCLUDES(mutex_);

  // Whether the inode belongs to a clone that was not finished. The next mount removes it.
  bool IsHidden(uint64_t inode) const;

  // Number of chunks found in a segment; 0 if the segment is missing.
  void SetChunksIn(SegmentId id, uint32_t chunks) SILTFS_EXCLUDES(mutex_);
  uint32_t ChunksIn(SegmentId id) const SILTFS_EXCLUDES(mutex_);

  Env& env;
  const CheckOptions& options;
  const std::unique_ptr<SegmentStore> segment_store;
  Superblock superblock;
  uint64_t highest_commit = 0;  // recorded in a superblock copy

  // Null if the metadata cannot be opened.
  std::unique_ptr<KvStore> metadata;
  bool records_known = false;  // the next ten fields were read from metadata
  uint64_t last_commit = 0;
  EpochFloors floors;
  FormerSegments former;
  IdRanges ids;
  std::vector<HiddenRange> hidden;  // ascending
  std::map<SegmentId, SegmentRecord> segments;
  SegmentSet secondary;            // noted segments, which may hold secondary copies
  SegmentSet victims;              // segments in `secondary` that a mount compares
  bool notes_kept = false;         // the store notes segments with secondary copies
  std::vector<SegmentId> removed;  // ascending; their files are ignored if they still exist

  std::unique_ptr<ChunkIndex> index;  // null if it cannot be opened

 private:
  static constexpr size_t kMostDamagedNames = 1u << 16;

  std::function<void(Finding)> taker_;
  mutable Mutex mutex_;  // held while on_finding and on_progress of `options` run
  CheckReport report_ SILTFS_GUARDED_BY(mutex_);
  std::unordered_set<ChunkName> damaged_ SILTFS_GUARDED_BY(mutex_);
  std::map<SegmentId, uint32_t> chunks_in_ SILTFS_GUARDED_BY(mutex_);
  std::vector<Finding> held_back_ SILTFS_GUARDED_BY(mutex_);
  std::atomic<bool> reference_not_indexed_{false};
  int64_t last_progress_ SILTFS_GUARDED_BY(mutex_) = 0;
};

// Whether a check reports this failure as a finding and continues.
bool IsDamage(const Status& status);

}  // namespace siltfs
