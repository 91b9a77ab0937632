#include "fs/gc/collection_candidates.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/segments/segment_tables.h"
#include "store/segment/segment_format.h"

namespace siltfs {
namespace {

// A segment with fewer dead chunks, in percent, is not worth copying. The limit is higher in the
// background, which need not hurry, than for a caller of Collect.
constexpr uint64_t kLeastDeadPercent = 5;
constexpr uint64_t kLeastDeadPercentInBackground = 8;
constexpr uint64_t kLeastDeadPercentWhenFull = 1;  // the disk has no room for new data
// The victims handled together have at most this many chunks; but at least one segment is handled.
constexpr uint64_t kMostChunksAtOnce = 512u << 10;

uint64_t LeastDeadPercent(CollectionReason reason) {
  switch (reason) {
    case CollectionReason::kBackground:
      return kLeastDeadPercentInBackground;
    case CollectionReason::kFullDisk:
      return kLeastDeadPercentWhenFull;
    case CollectionReason::kCaller:
      break;
  }
  return kLeastDeadPercent;
}

bool IsData(const SegmentRecord& record) {
  return record.kind == static_cast<uint8_t>(SegmentKind::kData);
}

}  // namespace

Result<CollectionCandidates> CountCandidates(const CollectorParts& parts,
                                             const CollectorOptions& options, CollectionPace& pace,
                                             GarbageOutcome& outcome,
                                             std::vector<uint64_t>& not_indexed) {
  SILTFS_RETURN_IF_ERROR(parts.metadata.CommitNow());
  const std::shared_ptr<const KvSnapshot> metadata = parts.metadata.CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  MarkOptions mark_options;
  mark_options.spill_directory = options.spill_directory;
  mark_options.pace = pace.PaceOfMark();
  mark_options.gone = [&parts](SegmentId id) { return parts.Gone(id); };
  SILTFS_ASSIGN_OR_RETURN(LiveCounts counts,
                          CountLive(parts.env, *metadata, parts.nodes, parts.index, mark_options));
  not_indexed = std::move(counts.not_indexed);
  CollectionCandidates candidates;
  GarbageRecord counted;
  for (const auto& [id, record] : records) {
    if (!record.sealed || record.chunks == 0 || parts.log.WriterOf(id) != nullptr) continue;
    const auto live = counts.live_chunks.find(id);
    CollectionCandidate candidate{id, record, 0};
    if (live != counts.live_chunks.end())
      candidate.live = std::min<uint64_t>(live->second, record.chunks);
    counted.dead_bytes += candidate.dead_bytes();
    if (IsData(record)) {
      counted.dead_chunks += candidate.dead();
      counted.dead_plain_bytes += record.plain_bytes * candidate.dead() / record.chunks;
    }
    outcome.live_chunks += candidate.live;
    outcome.dead_chunks += candidate.dead();
    candidates.push_back(candidate);
  }
  outcome.segments = candidates.size();
  outcome.dead_bytes = counted.dead_bytes;
  parts.account.SetDead(counted);
  return candidates;
}

// The benefit over the cost is (1 - u) * age / (1 + u). Here u is the live share of the segment,
// and age is the number of blocks written since. Source: Rosenblum and Ousterhout, The Design and
// Implementation of a Log-Structured File System, section 3.5.
CollectionCandidates WorthCollecting(const CollectionCandidates& all, CollectionReason reason) {
  const uint64_t least = LeastDeadPercent(reason);
  uint64_t newest = 0;
  for (const CollectionCandidate& candidate : all)
    newest = std::max(newest, candidate.record.last_sequence);
  CollectionCandidates worth;
  for (const CollectionCandidate& candidate : all) {
    if (candidate.dead() * 100 >= candidate.record.chunks * least && candidate.dead() > 0)
      worth.push_back(candidate);
  }
  const auto benefit = [newest](const CollectionCandidate& candidate) {
    const double alive =
        static_cast<double>(candidate.live) / static_cast<double>(candidate.record.chunks);
    const auto age = static_cast<double>(newest - candidate.record.last_sequence + 1);
    return (1 - alive) * age / (1 + alive);
  };
  std::sort(worth.begin(), worth.end(),
            [&](const CollectionCandidate& a, const CollectionCandidate& b) {
              if ((a.live == 0) != (b.live == 0)) return a.live == 0;
              return benefit(a) > benefit(b);
            });
  return worth;
}

CollectionCandidates FirstOf(const CollectionCandidates& worth) {
  CollectionCandidates some;
  uint64_t chunks = 0;
  for (const CollectionCandidate& candidate : worth) {
    chunks += candidate.record.chunks;
    if (!some.empty() && chunks > kMostChunksAtOnce) break;
    some.push_back(candidate);
  }
  return some;
}

}  // namespace siltfs
