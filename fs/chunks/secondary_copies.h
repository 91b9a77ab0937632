// The segments that may hold secondary copies: copies of chunks to which the index does not lead.
//
// A chunk gets a second copy when it is written again while its segment is being collected or is
// damaged, and when a collection copies it. The index leads to one copy only. If nothing refers to
// the chunk, its index entry is lost when the segment of this copy is removed. The other copy stays
// behind, unknown to the index. If a cached footer part had this other copy, the next write of the
// chunk would become a duplicate of it. But the index could not find the copy for this new
// reference.
//
// Invariant (docs/crash-model.md, I6): at most one copy of a chunk lies outside the noted segments,
// and the index leads to this copy, unless the chunk shares its index entry with another chunk
// (ChunkIndex::OrderOf) and is found by a search. So a cached footer part of a segment that is not
// noted may decide that a chunk is a duplicate. For a noted segment only the index decides. A
// segment is noted durably before it becomes a victim, and before a damaged chunk in it is stored
// again. A segment for chunks that a collection moves is noted before it is opened. So the note is
// durable before a second copy of one of the segment's chunks can be written anywhere, and before a
// moved copy can be written to the segment. The note is dropped with the segment, or when
// EntryCheck finds that the index leads to every chunk in the segment.
//
// A chunk of a victim may be written again, and the index then leads to a block that is not durable
// yet. If the index becomes durable first and a crash loses that block, the index leads nowhere,
// although the victim still has the chunk. The same happens to a chunk of a noted segment for which
// EntryCheck makes an entry, if a crash loses the entry after a file has begun to refer to the
// chunk. So the notes of these segments say that a mount after a crash compares them with the
// index.
//
// Thread-safety: every call from any thread; Contains of an empty set takes no lock. Memory: some
// 60 bytes for each noted segment. Errors: those of CommitPort::WriteThrough, with nothing changed.
// Durability: a note is durable when Note returns.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fs/meta/commit_port.h"
#include "fs/segments/segment_set.h"
#include "store/base/location.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SecondaryCopies {
 public:
  // `noted`: the segments that are noted in metadata. Notes are written through `metadata`, which
  // must outlive the object; if it is null, notes are in memory only.
  SecondaryCopies(std::vector<SegmentId> noted, CommitPort* metadata);

  bool Contains(SegmentId segment) const { return set_.Contains(segment); }
  // All noted segments, ascending.
  std::vector<SegmentId> All() const SILTFS_EXCLUDES(mutex_);

  Status Note(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);
  Status Note(SegmentId segment) { return Note(std::span(&segment, 1)); }
  // Like Note, for segments that are about to become victims.
  Status NoteVictims(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);
  // If the segment is noted, a mount after a crash will compare it with the index. This does not
  // count as a call of Note.
  Status CompareAfterCrash(SegmentId segment) SILTFS_EXCLUDES(mutex_);
  // Call after a mount has compared these segments with the index. Changes their notes to plain
  // notes, except for segments that became victims, or got entries, since the object was made.
  Status Compared(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // A count that rises with each call of Note or NoteVictims; used as `checked` in Forget.
  uint64_t Now() const SILTFS_EXCLUDES(mutex_);
  // Drops the notes of these segments, except segments for which Note or NoteVictims was called
  // after Now returned `checked`.
  Status Forget(std::span<const SegmentId> segments, uint64_t checked) SILTFS_EXCLUDES(mutex_);
  // Call after the segment was removed, and its note in metadata with it.
  void Removed(SegmentId segment) SILTFS_EXCLUDES(mutex_);

 private:
  struct Noted {
    uint64_t when = 0;     // of the last Note
    bool compare = false;  // after a crash
  };
  Status Enter(std::span<const SegmentId> segments, bool compare) SILTFS_EXCLUDES(mutex_);

  Status Write(const std::vector<Mutation>& mutations) SILTFS_REQUIRES(mutex_);

  CommitPort* const metadata_;
  mutable Mutex mutex_;  // held while notes are written to metadata, to keep them in order
  std::map<SegmentId, Noted> noted_ SILTFS_GUARDED_BY(mutex_);
  uint64_t now_ SILTFS_GUARDED_BY(mutex_) = 0;
  SegmentSet set_;  // the segments in noted_
};

}  // namespace siltfs
