#include "fs/gc/collection_candidates.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/meta/commit_records.h"
#include "fs/segments/segment_tables.h"
#include "store/segment/segment_format.h"

namespace siltfs {
namespace {

// A segment is worth collecting if at least this many percent of its chunks are dead. The
// background thread has a higher limit than a caller of Collect, because it need not hurry.
constexpr uint64_t kLeastDeadPercent = 5;
constexpr uint64_t kLeastDeadPercentInBackground = 8;
constexpr uint64_t kLeastDeadPercentWhenFull = 1;  // the disk has no room for new data
// The victims that a collection handles together have at most this many chunks in total. A segment
// with more chunks is handled alone.
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
  mark_options.more = parts.Bases();
  mark_options.progress = &pace.progress();
  SILTFS_ASSIGN_OR_RETURN(mark_options.expected_inodes, CountInodes(*metadata));
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

// The benefit over the cost is (1 - u) * age / (1 + u). Here u is the live share of the segment's
// chunks, and age is 1 plus the number of sealed segments that were finished after this segment.
// (Differences of block sequences do not measure age, because each mount begins with a sequence far
// above the last one.) Source: Rosenblum and Ousterhout, The Design and Implementation of a
// Log-Structured File System, section 3.5.
CollectionCandidates WorthCollecting(const CollectionCandidates& all, CollectionReason reason) {
  const uint64_t least = LeastDeadPercent(reason);
  std::vector<uint64_t> finished;  // the last sequence of each segment, ascending
  finished.reserve(all.size());
  for (const CollectionCandidate& candidate : all)
    finished.push_back(candidate.record.last_sequence);
  std::sort(finished.begin(), finished.end());

  struct Rated {
    double benefit = 0;
    const CollectionCandidate* candidate = nullptr;
  };
  std::vector<Rated> worth;
  for (const CollectionCandidate& candidate : all) {
    if (candidate.dead() * 100 < candidate.record.chunks * least || candidate.dead() == 0) continue;
    const double alive =
        static_cast<double>(candidate.live) / static_cast<double>(candidate.record.chunks);
    const auto since =
        std::lower_bound(finished.begin(), finished.end(), candidate.record.last_sequence);
    const auto age = static_cast<double>(finished.end() - since);
    worth.push_back({(1 - alive) * age / (1 + alive), &candidate});
  }
  std::sort(worth.begin(), worth.end(), [](const Rated& a, const Rated& b) {
    if ((a.candidate->live == 0) != (b.candidate->live == 0)) return a.candidate->live == 0;
    return a.benefit > b.benefit;
  });
  CollectionCandidates sorted;
  sorted.reserve(worth.size());
  for (const Rated& rated : worth) sorted.push_back(*rated.candidate);
  return sorted;
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
