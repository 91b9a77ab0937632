// Counts by how much maintenance has changed the space that chunks take. Recompression and garbage
// collection report their changes here. The chunk store reads the counts for its totals and for the
// record of each commit.
//
// Thread-safety: every call from any thread. Units: bytes of segment files, and counts. No errors.
// Durability: none; a commit records known().
#pragma once

#include <atomic>
#include <cstdint>

#include "fs/records/garbage_record.h"
#include "fs/records/segment_record.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SpaceAccount {
 public:
  // `known`: the record of the last commit.
  explicit SpaceAccount(const GarbageRecord& known);

  // --- Recompression

  // A segment file of `before` bytes has become one of `after` bytes.
  void CountRecompressed(uint64_t before, uint64_t after) SILTFS_EXCLUDES(mutex_);

  // --- Garbage collection

  // Sets the dead chunks to those that a collection has counted.
  void SetDead(const GarbageRecord& counted) SILTFS_EXCLUDES(mutex_);
  // A segment with `dead_chunks` dead chunks in `dead_bytes` of its file was removed.
  void CountRemoved(const SegmentRecord& record, uint64_t dead_chunks, uint64_t dead_bytes)
      SILTFS_EXCLUDES(mutex_);
  // Counts bytes of file content that were removed or replaced; `bytes` may be approximate.
  void NoteReleased(uint64_t bytes) { released_ += bytes; }
  // The bytes counted by NoteReleased since the store was opened, plus those that were known when
  // the store was opened.
  uint64_t released() const { return released_; }
  // Call when a collection is complete. `released`: the value of released() when it began.
  void SetCollected(uint64_t released) SILTFS_EXCLUDES(mutex_);

  // The state that a commit records for the next mount.
  GarbageRecord known() const SILTFS_EXCLUDES(mutex_);

  // Since the store was opened.
  struct Totals {
    uint64_t saved_bytes = 0;         // by how much recompressed files shrank
    uint64_t recompressed_bytes = 0;  // the former size of these files
    // Of removed segments.
    uint64_t removed_bytes = 0;
    uint64_t removed_not_recompressed_bytes = 0;
    uint64_t removed_chunks = 0;
    uint64_t removed_plain_bytes = 0;
  };
  Totals totals() const SILTFS_EXCLUDES(mutex_);

 private:
  std::atomic<uint64_t> released_;  // never decreases
  mutable Mutex mutex_;
  Totals totals_ SILTFS_GUARDED_BY(mutex_);
  GarbageRecord dead_ SILTFS_GUARDED_BY(mutex_);      // without released_bytes
  uint64_t collected_ SILTFS_GUARDED_BY(mutex_) = 0;  // argument of the last SetCollected
};

}  // namespace siltfs
