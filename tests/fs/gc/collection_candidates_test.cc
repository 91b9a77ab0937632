// The order in which segments are collected.
#include "fs/gc/collection_candidates.h"

#include "tests/support/catch.h"

namespace siltfs {
namespace {

// A segment of 100 chunks, whose last block has this sequence.
CollectionCandidate Segment(SegmentId id, uint64_t live, uint64_t last_sequence) {
  CollectionCandidate candidate;
  candidate.id = id;
  candidate.record.chunks = 100;
  candidate.record.length = 1 << 20;
  candidate.record.last_sequence = last_sequence;
  candidate.live = live;
  return candidate;
}

std::vector<SegmentId> Ids(const CollectionCandidates& candidates) {
  std::vector<SegmentId> ids;
  for (const CollectionCandidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

// The sequence of a block in a mount: each mount begins far above the last one.
constexpr uint64_t Sequence(uint64_t mount, uint64_t block) { return (mount << 40) + block; }

TEST_CASE("segments without live chunks come first, then those with more dead chunks") {
  const CollectionCandidates all = {Segment(1, 60, Sequence(1, 100)),
                                    Segment(2, 30, Sequence(1, 100)),
                                    Segment(3, 0, Sequence(1, 100))};
  CHECK(Ids(WorthCollecting(all, CollectionReason::kCaller)) == std::vector<SegmentId>{3, 2, 1});
}

TEST_CASE("of segments with equally many dead chunks, the oldest comes first") {
  const CollectionCandidates all = {Segment(1, 50, Sequence(1, 300)),
                                    Segment(2, 50, Sequence(1, 100)),
                                    Segment(3, 50, Sequence(1, 200))};
  CHECK(Ids(WorthCollecting(all, CollectionReason::kCaller)) == std::vector<SegmentId>{2, 3, 1});
}

TEST_CASE("mounts between two segments do not make the older one much older") {
  // Segment 1 is a little older than segment 2, but has far fewer dead chunks.
  CollectionCandidates all = {Segment(1, 80, Sequence(1, 400)), Segment(2, 20, Sequence(9, 1))};
  for (SegmentId id = 3; id < 20; ++id) all.push_back(Segment(id, 100, Sequence(10, id)));
  CHECK(Ids(WorthCollecting(all, CollectionReason::kCaller)) == std::vector<SegmentId>{2, 1});
}

}  // namespace
}  // namespace siltfs
