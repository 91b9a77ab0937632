// Handles a few victims of a garbage collection: commits, marks the live chunks of the victims
// exactly, copies these chunks, and removes the victims. These are the steps in garbage_collector.h
// from the commit of step 2 to step 6.
//
// Thread-safety: call it within a run of the collector. Memory: that of mark.h and relocator.h, and
// some 16 bytes for each chunk of the victims. Errors: a damaged segment is reported and left
// alone, unless all live chunks of its damaged blocks have undamaged copies elsewhere. Damage in
// recipes ends the collection. kNoSpace if copies do not fit; some victims may then be removed
// already.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "fs/chunks/lost_chunks.h"
#include "fs/gc/collection_candidates.h"
#include "fs/gc/collection_pace.h"
#include "fs/gc/collector_parts.h"
#include "fs/gc/garbage_outcome.h"
#include "fs/gc/relocator.h"
#include "fs/mark/mark.h"

namespace siltfs {

class VictimCollection {
 public:
  // `flush_index` makes durable all index entries that exist when it is called. The other arguments
  // must outlive the object. Collect adds its results to `outcome`.
  VictimCollection(const CollectorParts& parts, const CollectorOptions& options,
                   CollectionPace& pace, std::function<Status()> flush_index,
                   GarbageOutcome& outcome)
      : deps_(parts),
        options_(options),
        pace_(pace),
        flush_index_(std::move(flush_index)),
        outcome_(outcome) {}

  // Collects these segments, which must be victims. First waits for the threads that may still use
  // a duplicate that they found in one of them before it was a victim.
  Status Collect(const CollectionCandidates& some);

 private:
  struct Victim {
    CollectionCandidate candidate;
    SegmentFooter footer;  // without the chunks
  };

  // Marks the bases that stay needed in the victims: those of all other segments, and those of the
  // victims' own live chunks, which are inflated when they are copied.
  Status MarkBases(SegmentMark& mark, LostChunks& lost);
  // Leaves out the segments with dead chunks that a segment needs that got deltas since the mark
  // began. There are none, as long as recompression chooses no base in a victim
  // (garbage_collector.h); this is checked because a lost base cannot be restored.
  Result<CollectionCandidates> WithoutNewBases(const SegmentMark& mark,
                                               const CollectionCandidates& some);
  Result<SegmentFooter> ReadFooter(const CollectionCandidate& candidate);
  // Appends the candidate to `copied` if all its live chunks could be copied.
  Status CopyLive(const Victim& victim, const SegmentMark& mark, const LostChunks& lost,
                  Relocator& relocator, CollectionCandidates& copied);
  // Makes copied chunks, and chunks found elsewhere, durable. Then moves the entries of the copied
  // chunks, and makes these entries durable.
  Status MoveEntries(Relocator& relocator);
  // Removes the segments, except those that WithoutNewBases leaves out.
  Status Remove(const SegmentMark& mark, const CollectionCandidates& all);
  Status CheckSpace(uint64_t bytes);  // kNoSpace if copies of this size do not fit
  void LeaveAlone(const CollectionCandidate& candidate, const Status& why);

  const CollectorParts& deps_;
  const CollectorOptions& options_;
  CollectionPace& pace_;
  const std::function<Status()> flush_index_;
  GarbageOutcome& outcome_;
  uint64_t bases_seen_ = 0;  // SegmentBases::Now when the mark began
};

}  // namespace siltfs
