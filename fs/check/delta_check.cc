#include "fs/check/delta_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/segments/chunk_verifier.h"
#include "store/segment/segment_reader.h"

namespace siltfs {
namespace {

// A finding names at most this many chunks.
constexpr size_t kMostNamed = 3;

// Segments are checked in batches, so that one search covers all bases of a batch that the index
// does not find. A batch has about CheckOptions::unresolved_references bases.
class DeltaCheck {
 public:
  DeltaCheck(CheckContext& context, ChunkFinder& finder, BaseFinder& bases, ChunkVerifier verifier)
      : context_(context), finder_(finder), bases_(bases), verifier_(std::move(verifier)) {}

  Status Run() {
    const auto listing = context_.segment_store->List();
    if (!listing.ok()) return Status::Ok();  // already reported
    for (const SegmentId id : listing->ids) {
      if (context_.IsLeftover(id)) continue;
      SILTFS_RETURN_IF_ERROR(context_.Continue());
      SILTFS_RETURN_IF_ERROR(Gather(id));
      if (wanted_.size() >= context_.options.unresolved_references)
        SILTFS_RETURN_IF_ERROR(CheckBatch());
    }
    return CheckBatch();
  }

 private:
  struct Segment {
    SegmentId id = kNoSegment;
    std::vector<BaseRef> bases;  // of its deltas, ascending
    bool in_footer = false;      // `bases` is the base table of the footer
  };

  // Adds the segment to the batch if it has deltas.
  Status Gather(SegmentId id);
  // Calls `visit` for each block with deltas.
  Status ForEachDeltaBlock(const SegmentReader& reader,
                           const std::function<Status(const BlockHead&, uint32_t offset)>& visit);
  Status CheckBatch();
  Status CheckSegment(const Segment& segment);
  // Adds the bases of the block to `needed`.
  Status CheckBlock(const SegmentReader& reader, const BlockHead& head, uint32_t offset,
                    std::set<BaseRef>& needed);
  // Inflates the deltas of the block, and verifies them. Adds those that lack their bases to
  // `lost`.
  Status VerifyDeltas(const SegmentReader& reader, uint32_t offset, std::vector<DeltaBase>& lost);
  // Reports the deltas of this block that lack their bases.
  void SayLost(const SegmentReader& reader, const BlockHead& head, uint32_t offset,
               const std::vector<DeltaBase>& lost);

  CheckContext& context_;
  ChunkFinder& finder_;
  BaseFinder& bases_;
  ChunkVerifier verifier_;
  std::vector<Segment> batch_;
  std::set<BaseRef> wanted_;
};

Status DeltaCheck::Gather(SegmentId id) {
  const auto reader = finder_.Open(id);
  if (!reader.ok()) return Status::Ok();  // SegmentWalk has reported it
  const SegmentRecord* const record = context_.RecordOf(id);
  const auto trailer = (*reader)->ReadTrailer();
  if (trailer.ok() && trailer->base_count == 0) return Status::Ok();
  // Without a trailer, the record tells whether there are deltas.
  const bool unsealed = trailer.status().Is(StatusCode::kInvalidArgument) && record == nullptr;
  if (!trailer.ok() && (unsealed || (record != nullptr && !record->deltas))) return Status::Ok();
  Segment segment{id, {}, false};
  auto table = (*reader)->ReadBaseTable();
  if (table.ok()) {
    segment.bases = std::move(table).value();
    segment.in_footer = true;
  } else {
    table.status().IgnoreError("SegmentWalk has reported it");
    std::set<BaseRef> needed;
    SILTFS_RETURN_IF_ERROR(
        ForEachDeltaBlock(**reader, [&](const BlockHead&, uint32_t offset) -> Status {
          const auto deltas = (*reader)->ReadDeltaBases(offset);
          if (!deltas.ok()) return IsDamage(deltas.status()) ? Status::Ok() : deltas.status();
          for (const DeltaBase& delta : *deltas) needed.insert(delta.base);
          return Status::Ok();
        }));
    segment.bases.assign(needed.begin(), needed.end());
  }
  wanted_.insert(segment.bases.begin(), segment.bases.end());
  batch_.push_back(std::move(segment));
  return Status::Ok();
}

Status DeltaCheck::ForEachDeltaBlock(
    const SegmentReader& reader,
    const std::function<Status(const BlockHead&, uint32_t offset)>& visit) {
  auto blocks = reader.ReadBlockTable();
  if (!blocks.ok()) {
    blocks.status().IgnoreError("SegmentWalk has reported it");
    blocks = reader.ScanBlockTable();
  }
  if (!blocks.ok()) return IsDamage(blocks.status()) ? Status::Ok() : blocks.status();
  for (const BlockPlace& place : blocks->blocks) {
    SILTFS_RETURN_IF_ERROR(context_.Continue());
    const auto head = reader.ReadBlockHead(place.block_offset);
    if (!head.ok()) {
      head.status().IgnoreError("SegmentWalk has reported it");
    } else if (head->codec == BlockCodecId::kZstdDelta) {
      SILTFS_RETURN_IF_ERROR(visit(*head, place.block_offset));
    }
  }
  return Status::Ok();
}

Status DeltaCheck::CheckBatch() {
  const std::vector<BaseRef> wanted(wanted_.begin(), wanted_.end());
  wanted_.clear();
  SILTFS_RETURN_IF_ERROR(bases_.Resolve(wanted));
  for (const Segment& segment : std::exchange(batch_, {}))
    SILTFS_RETURN_IF_ERROR(CheckSegment(segment));
  return Status::Ok();
}

// Without `data`, the payloads are read only if a base is lost.
Status DeltaCheck::CheckSegment(const Segment& segment) {
  const bool whole = std::all_of(segment.bases.begin(), segment.bases.end(),
                                 [this](const BaseRef& base) { return bases_.IsThere(base); });
  if (whole && !context_.options.data) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const auto reader, finder_.Open(segment.id));
  std::set<BaseRef> needed;
  SILTFS_RETURN_IF_ERROR(ForEachDeltaBlock(*reader, [&](const BlockHead& head, uint32_t offset) {
    return CheckBlock(*reader, head, offset, needed);
  }));
  // Garbage collection would remove a base that is not in the table.
  if (segment.in_footer &&
      !std::includes(segment.bases.begin(), segment.bases.end(), needed.begin(), needed.end())) {
    context_.Report({.code = "segment-footer",
                     .path = reader->path(),
                     .message = "the footer lacks bases of the segment's deltas"});
  }
  return Status::Ok();
}

Status DeltaCheck::CheckBlock(const SegmentReader& reader, const BlockHead& head, uint32_t offset,
                              std::set<BaseRef>& needed) {
  const auto deltas = reader.ReadDeltaBases(offset);
  if (!deltas.ok()) return IsDamage(deltas.status()) ? Status::Ok() : deltas.status();
  std::vector<DeltaBase> lost;
  for (const DeltaBase& delta : *deltas) {
    needed.insert(delta.base);
    if (!context_.options.data && !bases_.IsThere(delta.base)) lost.push_back(delta);
  }
  if (context_.options.data) SILTFS_RETURN_IF_ERROR(VerifyDeltas(reader, offset, lost));
  if (!lost.empty()) SayLost(reader, head, offset, lost);
  return Status::Ok();
}

Status DeltaCheck::VerifyDeltas(const SegmentReader& reader, uint32_t offset,
                                std::vector<DeltaBase>& lost) {
  const auto block = reader.ReadBlock(offset, kUsualBlockBytes, &bases_);
  if (!block.ok()) return IsDamage(block.status()) ? Status::Ok() : block.status();
  const BlockHead& head = (*block)->head();
  for (const DeltaBase& delta : (*block)->bases()) {
    const ChunkRecord& chunk = head.records[delta.position];
    const Status* const missing = (*block)->missing(delta.position);
    if (missing != nullptr && (!bases_.IsThere(delta.base) || !bases_.ReadBase(delta.base).ok())) {
      lost.push_back(delta);
      continue;
    }
    const ByteView bytes = (*block)->chunk(delta.position);
    if (missing == nullptr && verifier_.Verify(chunk, bytes) == ChunkVerifier::Verdict::kRight)
      continue;
    context_.AddDamaged(chunk.name);
    context_.Report(
        {.code = "chunk-name",
         .path = reader.path(),
         .offset = offset,
         .message = fmt::format("chunk {} of the segment, {}, is a delta that does not "
                                "inflate to the bytes of its name",
                                head.first_ordinal + delta.position, chunk.name.ToHex())});
  }
  return Status::Ok();
}

void DeltaCheck::SayLost(const SegmentReader& reader, const BlockHead& head, uint32_t offset,
                         const std::vector<DeltaBase>& lost) {
  std::string named;
  for (size_t i = 0; i < std::min(lost.size(), kMostNamed); ++i) {
    named += fmt::format("{}chunk {} of the segment needs the base {}", i == 0 ? "" : ", ",
                         head.first_ordinal + lost[i].position, lost[i].base.ToString());
  }
  if (lost.size() > kMostNamed)
    named += fmt::format(", and {} other chunks need bases", lost.size() - kMostNamed);
  for (const DeltaBase& delta : lost) context_.AddDamaged(head.records[delta.position].name);
  context_.Report({.code = "delta-base",
                   .path = reader.path(),
                   .offset = offset,
                   .message = named + " that no segment has as a whole, undamaged chunk"});
}

}  // namespace

Status CheckDeltas(CheckContext& context, ChunkFinder& finder, BaseFinder& bases) {
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(context.superblock.uuid.bytes));
  return DeltaCheck(context, finder, bases, {std::move(namer), context.superblock.tag_secret})
      .Run();
}

}  // namespace siltfs
