// Selects the segments that a garbage collection works on: counts the live chunks of all sealed
// segments (mark.h), and orders the segments worth collecting.
//
// Thread-safety: call it within a run of the collector. Memory: that of mark.h, and some 80 bytes
// for each segment. Errors: those of the mark and of metadata.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/gc/collection_pace.h"
#include "fs/gc/collector_parts.h"
#include "fs/gc/garbage_outcome.h"

namespace siltfs {

// A sealed segment, as of the last count.
struct CollectionCandidate {
  SegmentId id = kNoSegment;
  SegmentRecord record;
  uint64_t live = 0;  // chunks

  uint64_t dead() const { return record.chunks - live; }
  uint64_t dead_bytes() const { return record.length * dead() / record.chunks; }
};
using CollectionCandidates = std::vector<CollectionCandidate>;

// Why segments are collected. The reason decides how many dead chunks make a segment worth
// collecting.
enum class CollectionReason : uint8_t { kCaller, kBackground, kFullDisk };

// Commits, and counts the live chunks of each sealed segment. Sets the dead chunks of the space
// account (CollectorParts::account), and the counts of `outcome`. Sets `not_indexed` to
// LiveCounts::not_indexed.
Result<CollectionCandidates> CountCandidates(const CollectorParts& parts,
                                             const CollectorOptions& options, CollectionPace& pace,
                                             GarbageOutcome& outcome,
                                             std::vector<uint64_t>& not_indexed);

// Returns the segments worth collecting: first those without live chunks, which need no copying,
// then the others by descending benefit over cost.
CollectionCandidates WorthCollecting(const CollectionCandidates& all, CollectionReason reason);

// The first candidates, as many as a collection handles together: at least one if `worth` has any.
CollectionCandidates FirstOf(const CollectionCandidates& worth);

}  // namespace siltfs
