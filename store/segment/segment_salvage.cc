#include "store/segment/segment_salvage.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/env/files.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_io.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

constexpr size_t kCopyBytes = 256U << 10;
// Required free space beyond a copy of the blocks.
constexpr uint64_t kRoomForFooter = 4U << 20;

class Salvage {
 public:
  Salvage(Env& env, const std::string& store, SegmentStore& segments,
          const SegmentIdentity& identity, const SalvageOptions& options)
      : env_(env), store_(store), segments_(segments), identity_(identity), options_(options) {}

  Result<SalvageResult> Run();

 private:
  Status Open();
  // Empty if the header is damaged and nothing in the segment was ever committed.
  Result<std::optional<SegmentHeader>> FindHeader();
  // Determines whether the segment is sealed, and the length that must be intact.
  Status InspectFooter();
  Status CollectBlocks();
  Result<SalvageResult> Remove();
  Status MakeFooterDurable();
  // Whether the disk has room for a copy.
  Result<bool> HasRoomForCopy() const;
  Status WriteReplacement(const SegmentHeader& header);
  Status SealInPlace();
  Status PutFile();
  Status CopyBlocks(uint64_t from, File& to) const;

  Env& env_;
  const std::string& store_;
  SegmentStore& segments_;
  const SegmentIdentity identity_;
  const SalvageOptions& options_;
  const BlockCodec codec_;

  std::unique_ptr<SegmentReader> reader_;
  // True: the segment is in its file in the store's directory. False: it was put into segments_.
  bool local_ = true;
  uint64_t size_ = 0;
  bool header_damaged_ = false;
  bool footer_whole_ = false;
  bool footer_claimed_ = false;
  // Every byte below this offset was durable.
  uint64_t committed_length_ = 0;
  // The start of the footer according to an intact trailer, otherwise 0.
  uint64_t data_end_ = 0;
  SegmentFooter footer_;
  uint64_t first_block_commit_ = 0;
};

Status Salvage::Open() {
  auto opened = SegmentReader::Open(env_, store_, identity_, codec_);
  local_ = !opened.status().Is(StatusCode::kNotFound);
  if (!local_) opened = SegmentReader::Open(segments_, identity_, codec_);
  if (!opened.ok()) return std::move(opened).status();
  reader_ = std::move(opened).value();
  return Status::Ok();
}

Status Salvage::InspectFooter() {
  committed_length_ = options_.committed_length;
  auto sealed = reader_->IsSealed();
  if (!sealed.ok() && !sealed.status().Is(StatusCode::kCorruption))
    return std::move(sealed).status();
  footer_claimed_ = !sealed.ok() || *sealed;
  if (!sealed.ok() || !*sealed) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, reader_->ReadTrailer());
  // Seal syncs the blocks before it writes the footer, so all blocks were durable.
  data_end_ = trailer.data_end;
  committed_length_ = std::max<uint64_t>(committed_length_, data_end_);
  auto footer = reader_->ReadFooter();
  if (!footer.ok() && !footer.status().Is(StatusCode::kCorruption))
    return std::move(footer).status();
  footer_whole_ = footer.ok();
  if (footer.ok()) footer_ = std::move(footer).value();
  return Status::Ok();
}

Result<std::optional<SegmentHeader>> Salvage::FindHeader() {
  Bytes bytes(std::min<uint64_t>(kSegmentHeaderSize, size_));
  SILTFS_RETURN_IF_ERROR(ReadExactly(reader_->file(), 0, bytes));
  auto header = DecodeSegmentHeader(bytes);
  if (header.ok()) {
    // Another segment's file in this place must be neither salvaged nor removed.
    SILTFS_RETURN_IF_ERROR(CheckIdentity(header->identity, identity_).At(reader_->path(), 0));
    return std::optional(*header);
  }
  if (!header.status().Is(StatusCode::kCorruption))
    return std::move(header).status().At(reader_->path(), 0);
  header_damaged_ = true;
  // A footer is written only after the header is durable.
  bool was_durable = committed_length_ > kSegmentHeaderSize || footer_claimed_;
  if (!was_durable) return std::optional<SegmentHeader>();
  Status damage = std::move(header).status().At(reader_->path(), 0);
  if (!options_.on_damage) return damage;
  damage.IgnoreError("on_damage reports it below");
  SILTFS_RETURN_IF_ERROR(options_.on_damage(0, kSegmentHeaderSize, damage));
  return std::optional(SegmentHeader{options_.kind, identity_, 0});
}

Status Salvage::CollectBlocks() {
  footer_ = {};
  auto scanned = ScanBlocks(reader_->file(), identity_,
                            {.committed_length = committed_length_,
                             .end = data_end_,
                             .verify_payloads = true,
                             .on_damage = options_.on_damage},
                            [&](const BlockHead& head, uint32_t offset) {
                              if (footer_.blocks.empty()) first_block_commit_ = head.last_commit;
                              footer_.Add({offset, head.first_ordinal}, head.records, head.sequence,
                                          offset + head.total_bytes());
                              return AddBasesAt(reader_->file(), head, offset, footer_);
                            });
  return std::move(scanned).status();
}

Result<SalvageResult> Salvage::Run() {
  SILTFS_RETURN_IF_ERROR(Open());
  SILTFS_ASSIGN_OR_RETURN(size_, reader_->file().Size());
  SILTFS_RETURN_IF_ERROR(InspectFooter());
  SILTFS_ASSIGN_OR_RETURN(auto header, FindHeader());
  if (footer_whole_ && !header_damaged_) {
    if (local_) SILTFS_RETURN_IF_ERROR(MakeFooterDurable());
    return SalvageResult{SalvageOutcome::kAlreadySealed, footer_.trailer, 0};
  }
  if (!header) return Remove();
  SILTFS_RETURN_IF_ERROR(CollectBlocks());
  if (footer_.blocks.empty()) {
    if (committed_length_ <= kSegmentHeaderSize) return Remove();
    return Status(StatusCode::kCorruption, "no committed block of the segment is whole")
        .At(reader_->path());
  }
  if (header_damaged_) header->last_commit = first_block_commit_;
  footer_.trailer.kind = header->kind;
  // A segment with a damaged header always needs a copy, because a crash could destroy a header
  // that is rewritten in place.
  SILTFS_ASSIGN_OR_RETURN(const bool room, HasRoomForCopy());
  SILTFS_RETURN_IF_ERROR(room || header_damaged_ ? WriteReplacement(*header) : SealInPlace());
  return SalvageResult{SalvageOutcome::kSealed, footer_.trailer, size_ - footer_.trailer.data_end};
}

Result<SalvageResult> Salvage::Remove() {
  reader_.reset();
  SILTFS_RETURN_IF_ERROR(segments_.Remove(identity_.id));
  return SalvageResult{SalvageOutcome::kRemoved, {}, size_};
}

// Writes the footer again and syncs it. The process may have been killed, or a sync may have
// failed, just after the footer or the name was written. The blocks were durable before, but a
// failed sync may have dropped the footer.
Status Salvage::MakeFooterDurable() {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          env_.OpenFile(reader_->path(), {.mode = OpenMode::kReadWrite}));
  SILTFS_RETURN_IF_ERROR(
      file->Write(footer_.trailer.data_end, AsBytes(EncodeSegmentFooter(footer_, identity_))));
  SILTFS_RETURN_IF_ERROR(file->Sync());
  SILTFS_RETURN_IF_ERROR(file->Close());
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(SegmentDirectory(store_, identity_.id)));
  return PutFile();
}

// The file was found first, so another content of the segment is not the store's.
Status Salvage::PutFile() {
  const SegmentSource file = BuiltSegment(env_, store_, identity_.id);
  Status put = segments_.Put(identity_.id, file);
  if (!put.Is(StatusCode::kAlreadyExists)) return put;
  put.IgnoreError("a fenced writer has put the other content");
  return segments_.Replace(identity_.id, file);
}

Status Salvage::WriteReplacement(const SegmentHeader& header) {
  SILTFS_ASSIGN_OR_RETURN(auto file, CreateTemporarySegment(env_, store_, identity_.id));
  SILTFS_RETURN_IF_ERROR(file->Write(0, AsBytes(EncodeSegmentHeader(header))));
  SILTFS_RETURN_IF_ERROR(CopyBlocks(kSegmentHeaderSize, *file));
  SILTFS_RETURN_IF_ERROR(
      file->Write(footer_.trailer.data_end, AsBytes(EncodeSegmentFooter(footer_, identity_))));
  SILTFS_RETURN_IF_ERROR(file->Sync());
  SILTFS_RETURN_IF_ERROR(file->Close());
  return segments_.Replace(identity_.id, BuiltReplacement(env_, store_, identity_.id));
}

Result<bool> Salvage::HasRoomForCopy() const {
  if (!local_) return true;  // only a file can be sealed in place
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, env_.GetDiskSpace(reader_->path()));
  return space.available_bytes >= footer_.trailer.data_end + kRoomForFooter;
}

// Writes the bytes that were not durable again in place, because a failed sync may have dropped
// them. Durable bytes are not touched. Then seals like SegmentWriter::Seal: syncs the blocks first.
Status Salvage::SealInPlace() {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          env_.OpenFile(reader_->path(), {.mode = OpenMode::kReadWrite}));
  const uint64_t durable = std::max<uint64_t>(committed_length_, kSegmentHeaderSize);
  SILTFS_RETURN_IF_ERROR(CopyBlocks(durable, *file));
  SILTFS_RETURN_IF_ERROR(file->Truncate(footer_.trailer.data_end));
  SILTFS_RETURN_IF_ERROR(ForGood(file->Sync()));
  SILTFS_RETURN_IF_ERROR(
      file->Write(footer_.trailer.data_end, AsBytes(EncodeSegmentFooter(footer_, identity_))));
  SILTFS_RETURN_IF_ERROR(ForGood(file->Sync()));
  SILTFS_RETURN_IF_ERROR(file->Close());
  SILTFS_RETURN_IF_ERROR(SyncNames(env_, SegmentDirectory(store_, identity_.id)));
  return PutFile();
}

Status Salvage::CopyBlocks(uint64_t from, File& to) const {
  Bytes buffer;
  for (uint64_t offset = from; offset < footer_.trailer.data_end; offset += buffer.size()) {
    buffer.resize(std::min<uint64_t>(kCopyBytes, footer_.trailer.data_end - offset));
    SILTFS_RETURN_IF_ERROR(ReadExactly(reader_->file(), offset, buffer));
    SILTFS_RETURN_IF_ERROR(to.Write(offset, buffer));
  }
  return Status::Ok();
}

}  // namespace

Result<SalvageResult> SalvageSegment(Env& env, const std::string& store, SegmentStore& segments,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options) {
  return Salvage(env, store, segments, identity, options).Run();
}

Result<SalvageResult> SalvageSegment(Env& env, const std::string& store,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options) {
  DirectorySegmentStore segments(env, store);
  return SalvageSegment(env, store, segments, identity, options);
}

}  // namespace siltfs
