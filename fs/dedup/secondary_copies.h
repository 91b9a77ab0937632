// The segments that may hold secondary copies: copies of chunks to which the index does not lead.
//
// A chunk gets a second copy when it is written again while its segment is being collected or is
// damaged, and when a collection copies it. The index leads to one copy only. Its entry goes with
// that copy's segment when nothing refers to the chunk, and the other copy stays behind, unknown to
// the index. A cached footer part that holds it would still call the next write of the chunk a
// duplicate, and so create a reference that the index cannot resolve.
//
// Invariant (docs/crash-model.md, I6): of the copies of a chunk at most one lies outside the noted
// segments, and the index leads to that one. So a cached footer part of a segment that is not noted
// may decide that a chunk is a duplicate; for a noted segment the index is asked. A segment is
// noted, durably, before a second copy of one of its chunks, or the first copy in it, can be
// written: before it becomes a victim, before a damaged chunk in it is stored again, and before it
// is opened for chunks that a collection moves. The note goes with the segment, or when the index
// is seen to lead to every chunk in it (EntryCheck).
//
// A chunk of a victim may be written again, and the index then leads to a block that is not durable
// yet. If the index becomes durable first and a crash takes that block, the index leads nowhere
// although the victim still has the chunk. So the note of such a segment says that it was a victim,
// and a mount after a crash compares it with the index.
//
// Thread-safety: every call from any thread; Contains of an empty set takes no lock. Memory: some
// 60 bytes for each noted segment. Errors: those of `write`, with nothing changed. Durability: a
// note is durable when Note returns.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fs/dedup/segment_set.h"
#include "fs/meta/kv_store.h"
#include "store/base/location.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SecondaryCopies {
 public:
  // Writes metadata durably; returns when that is done.
  using Write = std::function<Status(const std::vector<Mutation>&)>;

  // `noted`: the segments that metadata has as noted. If `write` is empty, notes are not kept.
  SecondaryCopies(std::vector<SegmentId> noted, Write write);

  bool Contains(SegmentId segment) const { return set_.Contains(segment); }
  // Ascending.
  std::vector<SegmentId> All() const SILTFS_EXCLUDES(mutex_);

  Status Note(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);
  Status Note(SegmentId segment) { return Note(std::span(&segment, 1)); }
  // Note, for segments that are about to become victims.
  Status NoteVictims(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);
  // Call after a mount has compared these with the index: their notes become plain ones.
  Status Compared(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // A moment between two calls of Note.
  uint64_t Now() const SILTFS_EXCLUDES(mutex_);
  // Drops the notes of these segments, except those for which Note was called after `checked`.
  Status Forget(std::span<const SegmentId> segments, uint64_t checked) SILTFS_EXCLUDES(mutex_);
  // The segment was removed, and its note in metadata with it.
  void Removed(SegmentId segment) SILTFS_EXCLUDES(mutex_);

 private:
  struct Noted {
    uint64_t when = 0;  // of the last Note
    bool victim = false;
  };
  Status Enter(std::span<const SegmentId> segments, bool victim) SILTFS_EXCLUDES(mutex_);

  const Write write_;
  mutable Mutex mutex_;  // held while metadata is written: notes are written in their order
  std::map<SegmentId, Noted> noted_ SILTFS_GUARDED_BY(mutex_);
  uint64_t now_ SILTFS_GUARDED_BY(mutex_) = 0;
  SegmentSet set_;  // the same segments
};

}  // namespace siltfs
