#include "store/segment/segment_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "store/base/checksum.h"
#include "store/env/files.h"
#include "store/segment/delta_payload.h"
#include "store/segment/delta_selection.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"

namespace siltfs {
namespace {

Status Damaged(const std::string& path, uint64_t offset, std::string cause) {
  return Status(StatusCode::kCorruption, std::move(cause)).At(path, offset);
}

// Checksums of a written block, to compare with the block that is read back.
struct Written {
  uint64_t head_checksum = 0;
  uint64_t plain_checksum = 0;
};

// Of chunks one after the other. They need not be adjacent in memory.
uint64_t ChecksumOfNext(ByteView chunk, uint64_t checksum_before) {
  return Checksum(chunk, checksum_before);
}

Status CheckWhole(const DecodedBlock& block, const std::string& path, uint64_t offset) {
  if (!block.any_missing()) return Status::Ok();
  for (const DeltaBase& delta : block.bases()) {
    const Status* const missing = block.missing(delta.position);
    if (missing != nullptr) return Status(*missing).At(path, offset);
  }
  return Damaged(path, offset, "a chunk is missing");
}

class Rewrite {
 public:
  Rewrite(Env& env, const std::string& store, SegmentStore& segments,
          const SegmentIdentity& identity, const BlockCodec& codec, const RewriteOptions& options)
      : env_(env),
        store_(store),
        segments_(segments),
        identity_(identity),
        codec_(codec),
        options_(options),
        selection_(codec, options.compression.level, options.chooser, options.bases) {}

  Result<PreparedRewrite> Run();

 private:
  Status Pace(uint64_t plain_bytes) const {
    return options_.pace ? options_.pace(plain_bytes) : Status::Ok();
  }
  Status CheckOptions() const;
  Status OpenOld();
  Status CreateNew();
  // Reads block `number` of the old segment, and checks its place and chunks against the footer.
  Result<DecodedBlockPtr> ReadOld(size_t number);
  Status CopyBlocks();
  Status Take(const DecodedBlock& block);
  // Selects the block's chunks that become deltas.
  Status TakeDeltas(const DecodedBlock& block);
  bool Fits(const DecodedBlock& block) const;
  // Writes the gathered chunks as one block.
  Status WriteBlock();
  Status Finish();
  // Reads and verifies the new file from scratch.
  Status ReadBack() const;

  Env& env_;
  const std::string& store_;
  SegmentStore& segments_;
  const SegmentIdentity identity_;
  const BlockCodec& codec_;
  const RewriteOptions& options_;

  std::unique_ptr<SegmentReader> old_;
  SegmentHeader header_;
  SegmentFooter old_footer_;
  uint64_t last_sequence_ = 0;  // of the old blocks read so far

  std::unique_ptr<File> file_;
  uint64_t end_ = kSegmentHeaderSize;  // of the new file
  SegmentFooter footer_;
  std::vector<Written> written_;  // by block of the new file

  DeltaSelection selection_;
  uint32_t deltas_ = 0;
  uint64_t delta_saved_bytes_ = 0;

  // The block being gathered.
  PlainBlock gathered_;
  DeltaSelection::Selected gathered_deltas_;
  uint64_t sequence_ = 0;
  uint64_t last_commit_ = 0;
};

Status Rewrite::CheckOptions() const {
  if (options_.chooser == nullptr || options_.bases != nullptr) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "deltas are made, but there is no source of bases");
}

Status Rewrite::OpenOld() {
  SILTFS_ASSIGN_OR_RETURN(old_, SegmentReader::Open(segments_, identity_, codec_));
  SILTFS_ASSIGN_OR_RETURN(header_, old_->ReadHeader());
  SILTFS_ASSIGN_OR_RETURN(old_footer_, old_->ReadFooter());
  if (old_footer_.trailer.base_count > 0 && options_.bases == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "segment has deltas, but there is no source of bases")
        .At(old_->path());
  }
  const bool data = header_.kind == SegmentKind::kData;
  if (data && old_footer_.trailer.kind == header_.kind) return Status::Ok();
  return Status(
             data ? StatusCode::kCorruption : StatusCode::kInvalidArgument,
             data ? "header and footer differ in the kind of the segment" : "segment holds no data")
      .At(old_->path(), 0);
}

Status Rewrite::CreateNew() {
  SILTFS_ASSIGN_OR_RETURN(file_, CreateTemporarySegment(env_, store_, identity_.id));
  footer_.trailer.kind = header_.kind;
  return file_->Write(0, AsBytes(EncodeSegmentHeader(header_)));
}

Result<DecodedBlockPtr> Rewrite::ReadOld(size_t number) {
  const std::vector<BlockPlace>& places = old_footer_.blocks;
  const BlockPlace& place = places[number];
  const bool last = number + 1 == places.size();
  const uint64_t end = last ? old_footer_.trailer.data_end : places[number + 1].block_offset;
  SILTFS_ASSIGN_OR_RETURN(
      DecodedBlockPtr block,
      old_->ReadBlock(place.block_offset, end - place.block_offset, options_.bases));
  SILTFS_RETURN_IF_ERROR(CheckWhole(*block, old_->path(), place.block_offset));
  const BlockHead& head = block->head();
  const uint32_t end_ordinal =
      last ? old_footer_.trailer.chunk_count : places[number + 1].first_ordinal;
  if (place.block_offset + uint64_t{head.total_bytes()} != end ||
      head.first_ordinal != place.first_ordinal || head.end_ordinal() != end_ordinal) {
    return Damaged(old_->path(), place.block_offset,
                   "the block's place or ordinals differ from the footer's block table");
  }
  for (size_t i = 0; i < head.records.size(); ++i) {
    const FooterChunk chunk{head.records[i].name.Prefix64(), head.records[i].tag};
    if (old_footer_.chunks[head.first_ordinal + i] == chunk) continue;
    return Damaged(old_->path(), place.block_offset,
                   fmt::format("footer and block differ in the chunk with ordinal {}",
                               head.first_ordinal + i));
  }
  if (head.sequence <= last_sequence_) {
    return Damaged(
        old_->path(), place.block_offset,
        fmt::format("block of sequence {} follows one of {}", head.sequence, last_sequence_));
  }
  last_sequence_ = head.sequence;
  return block;
}

bool Rewrite::Fits(const DecodedBlock& block) const {
  return gathered_.plain.size() < options_.block_plain_bytes &&
         gathered_.plain.size() + block.head().plain_bytes <= kMaxBlockPlainBytes &&
         gathered_.records.size() + block.chunk_count() <= kMaxBlockChunks;
}

Status Rewrite::Take(const DecodedBlock& block) {
  if (!gathered_.records.empty() && !Fits(block)) SILTFS_RETURN_IF_ERROR(WriteBlock());
  SILTFS_RETURN_IF_ERROR(TakeDeltas(block));
  const BlockHead& head = block.head();
  gathered_.records.insert(gathered_.records.end(), head.records.begin(), head.records.end());
  for (size_t i = 0; i < block.chunk_count(); ++i) {
    const ByteView chunk = block.chunk(i);
    gathered_.plain.insert(gathered_.plain.end(), chunk.begin(), chunk.end());
  }
  sequence_ = head.sequence;
  last_commit_ = std::max(last_commit_, head.last_commit);
  return Status::Ok();
}

Status Rewrite::TakeDeltas(const DecodedBlock& block) {
  // Without compression there are no deltas, either.
  if (options_.compression.codec != BlockCodecId::kZstd) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(DeltaSelection::Selected selected, selection_.Select(block));
  const auto before = static_cast<uint32_t>(gathered_.records.size());
  for (DeltaFrame& delta : selected.deltas) {
    delta.delta.position += before;
    gathered_deltas_.deltas.push_back(std::move(delta));
  }
  gathered_deltas_.saved_bytes += selected.saved_bytes;
  return Status::Ok();
}

Status Rewrite::WriteBlock() {
  Written written;
  size_t begin = 0;
  for (const ChunkRecord& record : gathered_.records) {
    written.plain_checksum = ChecksumOfNext(ByteView(gathered_.plain).subspan(begin, record.length),
                                            written.plain_checksum);
    begin += record.length;
  }
  const DeltaSelection::Selected selected = std::exchange(gathered_deltas_, {});
  SILTFS_ASSIGN_OR_RETURN(
      EncodedBlock block,
      codec_.EncodeWithDeltas(std::exchange(gathered_, {}), selected.deltas, options_.compression));
  if (block.codec == BlockCodecId::kZstdDelta) {
    for (const DeltaFrame& delta : selected.deltas) footer_.bases.push_back(delta.delta.base);
    deltas_ += static_cast<uint32_t>(selected.deltas.size());
    delta_saved_bytes_ += selected.saved_bytes;
  }
  BlockHead head;
  head.codec = block.codec;
  head.first_ordinal = footer_.trailer.chunk_count;
  head.payload_bytes = static_cast<uint32_t>(block.payload.size());
  head.plain_bytes = block.plain_bytes;
  head.segment = identity_.id;
  head.sequence = sequence_;
  head.last_commit = std::exchange(last_commit_, 0);
  head.payload_checksum = block.payload_checksum;
  head.records = std::move(block.records);
  if (end_ >= kMaxSegmentTargetSize) {
    return Status(StatusCode::kFileTooLarge, "the segment grows when it is recompressed")
        .At(file_->path(), end_);
  }
  const std::string head_bytes = EncodeBlockHead(head, identity_);
  written.head_checksum = Checksum(AsBytes(head_bytes));
  SILTFS_RETURN_IF_ERROR(file_->Write(end_, AsBytes(head_bytes)));
  SILTFS_RETURN_IF_ERROR(file_->Write(end_ + head_bytes.size(), block.payload));
  const BlockPlace place{static_cast<uint32_t>(end_), head.first_ordinal};
  end_ += head.total_bytes();
  footer_.Add(place, head.records, head.sequence, end_);
  written_.push_back(written);
  return Status::Ok();
}

Status Rewrite::CopyBlocks() {
  if (old_footer_.blocks.front() != BlockPlace{kSegmentHeaderSize, 0}) {
    return Damaged(old_->path(), kSegmentHeaderSize, "the footer has no block at the beginning");
  }
  SILTFS_RETURN_IF_ERROR(Pace(0));
  for (size_t i = 0; i < old_footer_.blocks.size(); ++i) {
    SILTFS_ASSIGN_OR_RETURN(const DecodedBlockPtr block, ReadOld(i));
    SILTFS_RETURN_IF_ERROR(Take(*block));
    SILTFS_RETURN_IF_ERROR(Pace(block->head().plain_bytes));
  }
  return WriteBlock();
}

Status Rewrite::Finish() {
  // first_sequence is not compared, because the first merged block has the highest sequence of its
  // source blocks.
  const SegmentTrailer& before = old_footer_.trailer;
  if (footer_.chunks != old_footer_.chunks || footer_.trailer.plain_bytes != before.plain_bytes ||
      footer_.trailer.last_sequence != before.last_sequence) {
    return Damaged(old_->path(), before.data_end,
                   "the footer's totals differ from those of the blocks");
  }
  SILTFS_RETURN_IF_ERROR(file_->Write(end_, AsBytes(EncodeSegmentFooter(footer_, identity_))));
  SILTFS_RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

Status Rewrite::ReadBack() const {
  SILTFS_ASSIGN_OR_RETURN(
      const auto reader,
      SegmentReader::OpenAt(env_, TemporarySegmentPath(store_, identity_.id), identity_, codec_));
  SILTFS_ASSIGN_OR_RETURN(const SegmentHeader header, reader->ReadHeader());
  SILTFS_ASSIGN_OR_RETURN(const SegmentFooter footer, reader->ReadFooter());
  const bool as_written = header == header_ && footer.trailer == footer_.trailer &&
                          footer.blocks == footer_.blocks && footer.chunks == footer_.chunks &&
                          footer.bases == footer_.bases;
  if (!as_written)
    return Damaged(reader->path(), end_, "the file read back differs from the one written");
  for (size_t i = 0; i < footer.blocks.size(); ++i) {
    const uint32_t offset = footer.blocks[i].block_offset;
    const uint64_t end = i + 1 < footer.blocks.size() ? footer.blocks[i + 1].block_offset : end_;
    SILTFS_ASSIGN_OR_RETURN(const DecodedBlockPtr block,
                            reader->ReadBlock(offset, end - offset, options_.bases));
    SILTFS_RETURN_IF_ERROR(CheckWhole(*block, reader->path(), offset));
    uint64_t plain_checksum = 0;
    for (size_t k = 0; k < block->chunk_count(); ++k)
      plain_checksum = ChecksumOfNext(block->chunk(k), plain_checksum);
    const std::string head = EncodeBlockHead(block->head(), identity_);
    if (Checksum(AsBytes(head)) != written_[i].head_checksum ||
        plain_checksum != written_[i].plain_checksum) {
      return Damaged(reader->path(), offset, "the block read back differs from the one written");
    }
    SILTFS_RETURN_IF_ERROR(Pace(block->head().plain_bytes));
  }
  return Status::Ok();
}

Result<PreparedRewrite> Rewrite::Run() {
  SILTFS_RETURN_IF_ERROR(CheckOptions());
  SILTFS_RETURN_IF_ERROR(OpenOld());
  SILTFS_RETURN_IF_ERROR(CreateNew());
  const Status copied = CopyBlocks();
  // A new file that exceeds the size limit of a segment saves nothing.
  if (copied.Is(StatusCode::kFileTooLarge)) return PreparedRewrite{old_footer_.trailer, {}, false};
  SILTFS_RETURN_IF_ERROR(copied);
  SILTFS_RETURN_IF_ERROR(Finish());
  PreparedRewrite prepared{old_footer_.trailer, footer_.trailer, false};
  const uint64_t before = prepared.before.file_size();
  prepared.worthwhile =
      prepared.after.file_size() <= before - before * kLeastRewriteSavingPercent / 100;
  if (!prepared.worthwhile) return prepared;
  prepared.deltas = deltas_;
  prepared.delta_saved_bytes = delta_saved_bytes_;
  SILTFS_RETURN_IF_ERROR(ReadBack());
  return prepared;
}

}  // namespace

Result<PreparedRewrite> PrepareRewrite(Env& env, const std::string& store, SegmentStore& segments,
                                       const SegmentIdentity& identity, const BlockCodec& codec,
                                       const RewriteOptions& options) {
  auto prepared = Rewrite(env, store, segments, identity, codec, options).Run();
  if (prepared.ok() && prepared->worthwhile) return prepared;
  const Status discarded = DiscardRewrite(env, store, identity.id);
  if (prepared.ok()) SILTFS_RETURN_IF_ERROR(discarded);
  discarded.IgnoreError("the file is not needed, and the first failure counts");
  return prepared;
}

Status DiscardRewrite(Env& env, const std::string& store, SegmentId id) {
  const Status removed = env.RemoveFile(TemporarySegmentPath(store, id));
  if (removed.Is(StatusCode::kNotFound)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(removed);
  return env.SyncDirectory(SegmentDirectory(store, id));
}

}  // namespace siltfs
