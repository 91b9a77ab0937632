#include "fs/scrub/segment_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/segments/damaged_block.h"
#include "fs/segments/sealed_record.h"

namespace siltfs {
namespace {

// If reads fail for more than this many blocks in a row, the device as a whole has failed, and not
// only a few places on it. Then the verification ends.
constexpr uint32_t kMostDeviceFailures = 16;

// Tries twice: a block that can be read at the second attempt is not damaged.
Result<DecodedBlockPtr> ReadBlock(const SegmentReader& reader, const BlockTable::Found& found,
                                  BaseSource& bases) {
  const size_t bytes = found.bytes > 0 ? found.bytes : kUsualBlockBytes;
  auto block = reader.ReadBlock(found.place.block_offset, bytes, &bases);
  if (block.ok() && !(*block)->any_missing()) return block;
  block.status().IgnoreError("the failure may have been transient");
  return reader.ReadBlock(found.place.block_offset, bytes, &bases);
}

}  // namespace

uint64_t SegmentFindings::damaged_chunks() const {
  uint64_t count = 0;
  for (const DamagedBlock& block : damaged) count += block.chunks.size();
  return count;
}

SegmentScrub::SegmentScrub(SegmentCache& segments, BaseReader& bases, ChunkVerifier verifier,
                           Pace pace)
    : segments_(segments), bases_(bases), verifier_(std::move(verifier)), pace_(std::move(pace)) {}

Result<SegmentFindings> SegmentScrub::Verify(const OpenSegment& segment,
                                             const SegmentRecord& record) {
  findings_ = {};
  if (record.sealed) VerifyFooter(segment, record);
  uint32_t ordinal = 0;
  for (;;) {
    const auto found = FindBlock(segment, ordinal);
    if (!found.ok()) {
      if (!found.status().Is(StatusCode::kCorruption)) return found.status();
      found.status().IgnoreError("reported for the footer already, or below");
      break;
    }
    if (!*found) break;
    SILTFS_ASSIGN_OR_RETURN(ordinal, VerifyBlock(segment, **found, ordinal));
  }
  findings_.end_ordinal = ordinal;
  if (record.sealed) NoteRest(segment, record, ordinal);
  return std::move(findings_);
}

void SegmentScrub::VerifyFooter(const OpenSegment& segment, const SegmentRecord& record) {
  const auto footer = segment.reader->ReadFooter();
  if (footer.ok()) {
    const SegmentRecord found = SealedRecord(footer->trailer);
    // The segment may have been recompressed after its record was read. Then the file is newer than
    // the record and may have another length, but holds the same chunks. So compare only the
    // chunks.
    if (found.chunks == record.chunks && found.plain_bytes == record.plain_bytes) return;
  }
  findings_.footer_damaged = true;
  findings_.notices.push_back(
      footer.ok() ? Notice(Status(StatusCode::kCorruption,
                                  "the footer does not match the segment's record in metadata")
                               .At(segment.reader->path()))
                  : Notice(fmt::format("the footer of a segment is damaged: {}",
                                       footer.status().ToString()),
                           footer.status()));
}

// If the footer is damaged, the blocks are scanned.
Result<SegmentScrub::Found> SegmentScrub::FindBlock(const OpenSegment& segment, uint32_t ordinal) {
  return findings_.footer_damaged ? segments_.FindBlockByScan(segment, ordinal)
                                  : segments_.FindBlock(segment, ordinal);
}

Result<uint32_t> SegmentScrub::VerifyBlock(const OpenSegment& segment,
                                           const BlockTable::Found& found, uint32_t ordinal) {
  BasesOfSegment bases(bases_, segment.id);
  const auto block = ReadBlock(*segment.reader, found, bases);
  if (block.ok() && (*block)->head().Covers(ordinal)) {
    device_failures_ = 0;
    ++findings_.blocks;
    VerifyChunks(segment, found.place.block_offset, **block);
    SILTFS_RETURN_IF_ERROR(pace_((*block)->head().plain_bytes));
    return (*block)->head().end_ordinal();
  }
  if (!block.ok() && !block.status().Is(StatusCode::kCorruption) &&
      (!block.status().Is(StatusCode::kIoError) || ++device_failures_ > kMostDeviceFailures)) {
    return block.status();
  }
  DamagedBlock damaged = IdentifyDamage(segments_, segment, ordinal);
  ++findings_.blocks;
  findings_.chunks += damaged.chunks.size();
  Say(segment.reader->path(), found.place.block_offset, damaged,
      block.ok() ? "no whole block contains them" : block.status().cause());
  const uint32_t end = damaged.end_ordinal();
  findings_.damaged.push_back(std::move(damaged));
  SILTFS_RETURN_IF_ERROR(pace_(found.plain_bytes));
  return std::max(end, ordinal + 1);
}

void SegmentScrub::VerifyChunks(const OpenSegment& segment, uint32_t offset,
                                const DecodedBlock& block) {
  const BlockHead& head = block.head();
  for (uint32_t i = 0; i < head.records.size(); ++i) {
    ++findings_.chunks;
    DamagedBlock damaged{segment.id, head.first_ordinal + i, {DamagedChunkOf(head.records[i])}};
    if (const Status* missing = block.missing(i)) {
      Say(segment.reader->path(), offset, damaged, missing->cause());
      findings_.damaged.push_back(std::move(damaged));
      continue;
    }
    const auto verdict = verifier_.Verify(head.records[i], block.chunk(i));
    if (verdict == ChunkVerifier::Verdict::kRight) continue;
    Say(segment.reader->path(), offset, damaged,
        verdict == ChunkVerifier::Verdict::kOtherName ? "the bytes do not match the name"
                                                      : "the bytes do not match the tag");
    findings_.damaged.push_back(std::move(damaged));
  }
}

void SegmentScrub::NoteRest(const OpenSegment& segment, const SegmentRecord& record,
                            uint32_t ordinal) {
  while (ordinal < record.chunks) {
    const uint64_t count = std::min<uint64_t>(record.chunks - ordinal, DamagedBlock::kMostChunks);
    DamagedBlock damaged{segment.id, ordinal, std::vector<DamagedChunk>(count)};
    findings_.chunks += count;
    Say(segment.reader->path(), 0, damaged, "the segment ends before these chunks");
    findings_.damaged.push_back(std::move(damaged));
    ordinal += static_cast<uint32_t>(count);
    findings_.end_ordinal = ordinal;
  }
}

void SegmentScrub::Say(const std::string& path, uint64_t offset, const DamagedBlock& damaged,
                       std::string_view cause) {
  findings_.notices.push_back(
      Status(StatusCode::kCorruption,
             fmt::format("chunks {} to {} are damaged: {}", damaged.first_ordinal,
                         damaged.end_ordinal() - 1, cause))
          .At(path, offset));
}

}  // namespace siltfs
