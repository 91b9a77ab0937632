#include "store/segment/segment_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "store/base/checksum.h"
#include "store/env/files.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_io.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_rewrite.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

constexpr size_t kCopyBytes = 256u << 10;

class SegmentRepair {
 public:
  SegmentRepair(Env& env, const std::string& store, SegmentStore& segments,
                const SegmentIdentity& identity, const SegmentRepairOptions& options)
      : env_(env), store_(store), segments_(segments), identity_(identity), options_(options) {}

  Result<PreparedSegmentRepair> Run();

 private:
  bool drops_damage() const { return options_.filler.has_value(); }
  void ReadEnds();
  // The range of the blocks, as far as it is known.
  ScanOptions Extent() const;
  Status CreateNew();
  Status CopyBlocks();
  Status OnBlock(const BlockHead& head, uint32_t offset);
  // Copies a block unchanged, and adds it to the footer.
  Status CopyBlock(const BlockHead& head, uint32_t offset);
  Status CopyBytes(uint64_t from, uint64_t end);
  // Writes filler for the missing chunks before this ordinal.
  Status Fill(uint32_t end_ordinal, uint64_t below_sequence);
  Status WriteFiller(uint32_t chunks);
  // Writes the block again with filler for its deltas that lack their base. False if there are
  // none.
  Result<bool> WriteWithoutLostDeltas(const BlockHead& head, uint32_t offset);
  // Writes a block at the end of the new file, and adds it to the footer.
  Status WriteBlock(BlockHead head, const EncodedBlock& block);
  Status Finish();

  Env& env_;
  const std::string& store_;
  SegmentStore& segments_;
  const SegmentIdentity identity_;
  const SegmentRepairOptions& options_;
  const BlockCodec codec_;

  std::unique_ptr<SegmentReader> old_;
  uint64_t size_ = 0;
  std::optional<SegmentHeader> header_;
  std::optional<SegmentTrailer> trailer_;

  std::unique_ptr<File> file_;
  uint64_t copied_ = kSegmentHeaderSize;  // position in the old file
  uint64_t end_ = kSegmentHeaderSize;     // end of the new file
  SegmentFooter footer_;
  uint32_t next_ordinal_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t last_commit_ = 0;
  uint32_t lost_ = 0;
};

void SegmentRepair::ReadEnds() {
  auto header = old_->ReadHeader();
  if (header.ok()) header_ = *header;
  auto trailer = old_->ReadTrailer();
  if (trailer.ok()) trailer_ = *trailer;
}

ScanOptions SegmentRepair::Extent() const {
  ScanOptions scan;
  scan.verify_payloads = drops_damage();
  scan.on_damage = [](uint64_t, uint64_t, const Status& cause) {
    cause.IgnoreError("the ordinals show the missing chunks");
    return Status::Ok();
  };
  if (trailer_) {
    scan.committed_length = scan.end = trailer_->data_end;
  } else if (options_.sealed_length > 0) {
    scan.committed_length = scan.end =
        std::min(size_, LastDataEnd(options_.sealed_length, options_.chunks));
  } else {
    scan.committed_length = std::min(size_, options_.committed_length);
  }
  return scan;
}

Status SegmentRepair::CreateNew() {
  SILTFS_RETURN_IF_ERROR(DiscardRewrite(env_, store_, identity_.id));  // left by a crash
  SILTFS_ASSIGN_OR_RETURN(file_, CreateTemporarySegment(env_, store_, identity_.id));
  return Status::Ok();
}

Status SegmentRepair::CopyBytes(uint64_t from, uint64_t end) {
  Bytes buffer;
  for (; from < end; from += buffer.size()) {
    buffer.resize(std::min<uint64_t>(kCopyBytes, end - from));
    SILTFS_RETURN_IF_ERROR(ReadExactly(old_->file(), from, buffer));
    SILTFS_RETURN_IF_ERROR(file_->Write(end_, buffer));
    end_ += buffer.size();
  }
  return Status::Ok();
}

Status SegmentRepair::WriteFiller(uint32_t chunks) {
  EncodedBlock block;
  block.records.assign(chunks, *options_.filler);
  block.plain_bytes = chunks;
  block.payload.resize(chunks);
  block.payload_checksum = Checksum(block.payload);
  BlockHead head;
  head.first_ordinal = next_ordinal_;
  head.sequence = ++last_sequence_;
  head.last_commit = last_commit_;
  SILTFS_RETURN_IF_ERROR(WriteBlock(std::move(head), block));
  next_ordinal_ += chunks;
  return Status::Ok();
}

Status SegmentRepair::WriteBlock(BlockHead head, const EncodedBlock& block) {
  head.codec = block.codec;
  head.segment = identity_.id;
  head.payload_bytes = static_cast<uint32_t>(block.payload.size());
  head.plain_bytes = block.plain_bytes;
  head.payload_checksum = block.payload_checksum;
  head.records = block.records;
  if (end_ >= kMaxSegmentTargetSize)
    return Status(StatusCode::kFileTooLarge,
                  "the segment has no room for the chunks that replace damaged ones");
  SILTFS_RETURN_IF_ERROR(file_->Write(end_, AsBytes(EncodeBlockHead(head, identity_))));
  SILTFS_RETURN_IF_ERROR(file_->Write(end_ + head.head_bytes(), block.payload));
  const BlockPlace place{static_cast<uint32_t>(end_), head.first_ordinal};
  end_ += head.total_bytes();
  footer_.Add(place, head.records, head.sequence, end_);
  return Status::Ok();
}

Result<bool> SegmentRepair::WriteWithoutLostDeltas(const BlockHead& head, uint32_t offset) {
  if (!drops_damage() || options_.bases == nullptr || head.codec != BlockCodecId::kZstdDelta)
    return false;
  auto read = old_->ReadBlock(offset, head.total_bytes(), options_.bases);
  // A payload with the right checksum that cannot be decoded was written so. It is copied, like
  // such payloads without deltas.
  if (read.status().Is(StatusCode::kCorruption)) return false;
  SILTFS_ASSIGN_OR_RETURN(const DecodedBlockPtr block, std::move(read));
  if (!block->any_missing()) return false;
  PlainBlock plain;
  for (size_t i = 0; i < block->chunk_count(); ++i) {
    const Status* const missing = block->missing(i);
    // A device that fails now may still have the base.
    if (missing != nullptr && !missing->Is(StatusCode::kCorruption) &&
        !missing->Is(StatusCode::kNotFound)) {
      return Status(*missing).At(old_->path(), offset);
    }
    if (missing != nullptr) {
      plain.records.push_back(*options_.filler);
      plain.plain.push_back(0);
      ++lost_;
      continue;
    }
    const ByteView chunk = block->chunk(i);
    plain.records.push_back(head.records[i]);
    plain.plain.insert(plain.plain.end(), chunk.begin(), chunk.end());
  }
  SILTFS_ASSIGN_OR_RETURN(const EncodedBlock whole, codec_.Encode(std::move(plain), Compression()));
  SILTFS_RETURN_IF_ERROR(WriteBlock(head, whole));
  return true;
}

Status SegmentRepair::Fill(uint32_t end_ordinal, uint64_t below_sequence) {
  while (next_ordinal_ < end_ordinal) {
    // If the heads are right, the sequences between the whole blocks suffice: at least as many
    // blocks were lost as filler blocks are written, and each lost block had its own sequence.
    if (last_sequence_ + 1 >= below_sequence) {
      return Status(StatusCode::kCorruption,
                    "there is no block sequence left for the missing chunks")
          .At(old_->path(), copied_);
    }
    SILTFS_RETURN_IF_ERROR(WriteFiller(std::min(end_ordinal - next_ordinal_, kMaxBlockChunks)));
  }
  return Status::Ok();
}

Status SegmentRepair::OnBlock(const BlockHead& head, uint32_t offset) {
  lost_ += head.first_ordinal - next_ordinal_;
  if (drops_damage()) {
    SILTFS_RETURN_IF_ERROR(Fill(head.first_ordinal, head.sequence));
  } else {
    SILTFS_RETURN_IF_ERROR(CopyBytes(copied_, offset));  // damaged bytes, unchanged
  }
  copied_ = uint64_t{offset} + head.total_bytes();
  if (!header_) header_ = SegmentHeader{options_.kind, identity_, head.last_commit};
  SILTFS_ASSIGN_OR_RETURN(const bool written, WriteWithoutLostDeltas(head, offset));
  if (!written) SILTFS_RETURN_IF_ERROR(CopyBlock(head, offset));
  next_ordinal_ = head.end_ordinal();
  last_sequence_ = head.sequence;
  last_commit_ = head.last_commit;
  return Status::Ok();
}

Status SegmentRepair::CopyBlock(const BlockHead& head, uint32_t offset) {
  const BlockPlace place{static_cast<uint32_t>(end_), head.first_ordinal};
  SILTFS_RETURN_IF_ERROR(CopyBytes(offset, uint64_t{offset} + head.total_bytes()));
  footer_.Add(place, head.records, head.sequence, end_);
  return AddBasesAt(old_->file(), head, offset, footer_);
}

Status SegmentRepair::CopyBlocks() {
  auto scanned =
      ScanBlocks(old_->file(), identity_, Extent(),
                 [this](const BlockHead& head, uint32_t offset) { return OnBlock(head, offset); });
  if (!scanned.ok()) return std::move(scanned).status();
  if (scanned->blocks == 0)
    return Status(StatusCode::kCorruption, "no block of the segment is whole").At(old_->path());
  const uint32_t chunks = trailer_ ? trailer_->chunk_count : options_.chunks;
  if (next_ordinal_ >= chunks) return Status::Ok();
  lost_ += chunks - next_ordinal_;
  if (drops_damage()) return Fill(chunks, UINT64_MAX);
  return Status(StatusCode::kCorruption,
                fmt::format("the last {} chunks of the segment are lost", chunks - next_ordinal_))
      .At(old_->path());
}

Status SegmentRepair::Finish() {
  footer_.trailer.kind = header_->kind;
  SILTFS_RETURN_IF_ERROR(file_->Write(0, AsBytes(EncodeSegmentHeader(*header_))));
  SILTFS_RETURN_IF_ERROR(file_->Write(end_, AsBytes(EncodeSegmentFooter(footer_, identity_))));
  SILTFS_RETURN_IF_ERROR(ForGood(file_->Sync()));
  return file_->Close();
}

Result<PreparedSegmentRepair> SegmentRepair::Run() {
  SILTFS_ASSIGN_OR_RETURN(old_, SegmentReader::Open(segments_, identity_, codec_));
  SILTFS_ASSIGN_OR_RETURN(size_, old_->file().Size());
  ReadEnds();
  SILTFS_RETURN_IF_ERROR(CreateNew());
  SILTFS_RETURN_IF_ERROR(CopyBlocks());
  SILTFS_RETURN_IF_ERROR(Finish());
  return PreparedSegmentRepair{footer_.trailer, lost_};
}

}  // namespace

Result<PreparedSegmentRepair> PrepareSegmentRepair(Env& env, const std::string& store,
                                                   SegmentStore& segments,
                                                   const SegmentIdentity& identity,
                                                   const SegmentRepairOptions& options) {
  auto prepared = SegmentRepair(env, store, segments, identity, options).Run();
  if (!prepared.ok()) {
    DiscardRewrite(env, store, identity.id)
        .IgnoreError("the file is not needed, and the first failure counts");
  }
  return prepared;
}

}  // namespace siltfs
