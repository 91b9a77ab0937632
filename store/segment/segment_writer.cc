#include "store/segment/segment_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

constexpr uint64_t kBytesPerBeginSync = 2U << 20;

Status Invalid(std::string cause) { return Status(StatusCode::kInvalidArgument, std::move(cause)); }

Status Validate(const SegmentIdentity& identity, const SegmentWriterOptions& options) {
  if (identity.id == kNoSegment) return Invalid("segment ids start at 1");
  if (options.target_size < kMinSegmentTargetSize || options.target_size > kMaxSegmentTargetSize) {
    return Invalid(fmt::format("segment size {} is not between {} and {}", options.target_size,
                               kMinSegmentTargetSize, kMaxSegmentTargetSize));
  }
  return Status::Ok();
}

Result<SegmentHeader> ReadHeader(const File& file, const SegmentIdentity& identity) {
  Bytes bytes(kSegmentHeaderSize);
  SILTFS_RETURN_IF_ERROR(ReadExactly(file, 0, bytes));
  SILTFS_ASSIGN_OR_RETURN(SegmentHeader header, DecodeSegmentHeader(bytes));
  SILTFS_RETURN_IF_ERROR(CheckIdentity(header.identity, identity));
  return header;
}

// BlockCodec::Encode obeys the format's limits. This function rejects blocks that were made in
// another way and exceed them. It also rejects blocks with deltas: only a rewritten segment has
// them (segment_rewrite.h), so that an open segment needs no table of bases.
bool WithinLimits(const EncodedBlock& block) {
  return block.codec != BlockCodecId::kZstdDelta && !block.records.empty() &&
         block.records.size() <= kMaxBlockChunks && block.payload.size() <= block.plain_bytes &&
         block.plain_bytes <= kMaxBlockPlainBytes;
}

}  // namespace

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::Create(Env& env, const std::string& store,
                                                             const SegmentIdentity& identity,
                                                             SegmentKind kind, uint64_t last_commit,
                                                             const SegmentWriterOptions& options) {
  SILTFS_RETURN_IF_ERROR(Validate(identity, options));
  SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env, store, identity.id));
  const std::string path = SegmentPath(store, identity.id);
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kCreate}));
  const std::string header = EncodeSegmentHeader({kind, identity, last_commit});
  Status written = file->Write(0, AsBytes(header));
  if (!written.ok()) {
    const Status removed = env.RemoveFile(path);
    // If the empty file remains, salvage removes it later. Until then the call must not be retried,
    // so the failure is not kNoSpace.
    return removed.ok() ? std::move(written) : ForGood(std::move(written));
  }
  return std::unique_ptr<SegmentWriter>(
      new SegmentWriter(env, store, std::move(file), identity, kind, options));
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::Resume(Env& env, const std::string& store,
                                                             const SegmentIdentity& identity,
                                                             uint64_t length,
                                                             const SegmentWriterOptions& options) {
  SILTFS_RETURN_IF_ERROR(Validate(identity, options));
  const std::string path = SegmentPath(store, identity.id);
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kReadWrite}));
  SILTFS_ASSIGN_OR_RETURN(uint64_t size, file->Size());
  if (size != length) {
    return Status(StatusCode::kCorruption,
                  fmt::format("is {} bytes long, {} were committed", size, length))
        .At(path);
  }
  auto header = ReadHeader(*file, identity);
  if (!header.ok()) return std::move(header).status().At(path, 0);
  std::unique_ptr<SegmentWriter> writer(
      new SegmentWriter(env, store, std::move(file), identity, header->kind, options));
  SILTFS_RETURN_IF_ERROR(writer->RebuildTables(length));
  return writer;
}

SegmentWriter::SegmentWriter(Env& env, const std::string& store, std::unique_ptr<File> file,
                             const SegmentIdentity& identity, SegmentKind kind,
                             const SegmentWriterOptions& options)
    : env_(env),
      directory_(SegmentDirectory(store, identity.id)),
      identity_(identity),
      kind_(kind),
      options_(options),
      file_(std::move(file)) {
  WriterLock lock(tables_mutex_);
  footer_.trailer.kind = kind;
}

SegmentWriter::~SegmentWriter() = default;

Status SegmentWriter::RebuildTables(uint64_t length) {
  SegmentFooter footer;
  footer.trailer.kind = kind_;
  // Each block's head is read separately, and many small reads cost several times as much device
  // time as reading the whole file.
  file_->BeginRead(0, length);
  auto scanned = ScanBlocks(
      *file_, identity_, {.committed_length = length}, [&](const BlockHead& head, uint32_t offset) {
        if (head.codec == BlockCodecId::kZstdDelta) {
          return Status(StatusCode::kCorruption, "an open segment has a block with deltas")
              .At(path(), offset);
        }
        footer.Add({offset, head.first_ordinal}, head.records, head.sequence,
                   offset + head.total_bytes());
        return Status::Ok();
      });
  if (!scanned.ok()) return std::move(scanned).status();
  MutexLock sync_lock(sync_mutex_);
  name_durable_ = true;
  WriterLock lock(tables_mutex_);
  footer_ = std::move(footer);
  size_ = length;
  synced_size_ = length;
  return Status::Ok();
}

Result<BlockPlace> SegmentWriter::Append(const EncodedBlock& block, uint64_t sequence,
                                         uint64_t last_commit) {
  MutexLock append_lock(append_mutex_);
  SILTFS_RETURN_IF_ERROR(failure());
  uint64_t offset = 0;
  BlockHead head;
  {
    ReaderLock lock(tables_mutex_);
    if (!WithinLimits(block)) return Invalid("block exceeds the limits of the format").At(path());
    if (sealed_ || !HasRoom(block.records.size()))
      return Invalid("segment has no room for a block").At(path());
    if (sequence <= footer_.trailer.last_sequence) {
      return Invalid(fmt::format("block sequence {} is not above {}", sequence,
                                 footer_.trailer.last_sequence))
          .At(path());
    }
    offset = size_;
    head.first_ordinal = footer_.trailer.chunk_count;
  }
  head.codec = block.codec;
  head.payload_bytes = static_cast<uint32_t>(block.payload.size());
  head.plain_bytes = block.plain_bytes;
  head.segment = identity_.id;
  head.sequence = sequence;
  head.last_commit = last_commit;
  head.payload_checksum = block.payload_checksum;
  head.records = block.records;
  const std::string head_bytes = EncodeBlockHead(head, identity_);
  // One write: readers in this process never see half a head, and the disk gets one request.
  write_buffer_.assign(head_bytes.begin(), head_bytes.end());
  write_buffer_.insert(write_buffer_.end(), block.payload.begin(), block.payload.end());
  SILTFS_RETURN_IF_ERROR(WriteAtEnd(offset, write_buffer_));

  const BlockPlace place{static_cast<uint32_t>(offset), head.first_ordinal};
  {
    WriterLock lock(tables_mutex_);
    size_ = offset + write_buffer_.size();
    footer_.Add(place, block.records, sequence, size_);
  }
  BeginSync(offset + write_buffer_.size());
  return place;
}

void SegmentWriter::BeginSync(uint64_t size) {
  if (size - sync_begun_ < kBytesPerBeginSync) return;
  file_->BeginSync(sync_begun_, size - sync_begun_);
  sync_begun_ = size;
}

Status SegmentWriter::WriteAtEnd(uint64_t offset, ByteView bytes) {
  Status written = file_->Write(offset, bytes);
  if (written.ok()) return written;
  if (!written.Is(StatusCode::kNoSpace)) return Fail(std::move(written));
  // Remove the partial write. The earlier blocks are intact, and later appends and commits must
  // still be able to use the segment.
  Status truncated = file_->Truncate(offset);
  if (!truncated.ok()) return Fail(std::move(truncated));
  return written;
}

bool SegmentWriter::HasRoom(uint64_t chunks) const {
  return size_ < options_.target_size && footer_.trailer.chunk_count + chunks <= kMaxSegmentChunks;
}

bool SegmentWriter::IsFull() const {
  ReaderLock lock(tables_mutex_);
  return sealed_ || !HasRoom(1);
}

bool SegmentWriter::HasRoomFor(const EncodedBlock& block) const {
  ReaderLock lock(tables_mutex_);
  return !sealed_ && HasRoom(block.records.size());
}

Status SegmentWriter::Sync() {
  MutexLock lock(sync_mutex_);
  return SyncHoldingSyncMutex();
}

Status SegmentWriter::SyncHoldingSyncMutex() {
  SILTFS_RETURN_IF_ERROR(failure());
  uint64_t size = 0;
  {
    ReaderLock lock(tables_mutex_);
    if (synced_size_ == size_) return Status::Ok();
    size = size_;
  }
  Status synced = file_->Sync();
  if (synced.ok() && !name_durable_) synced = env_.SyncDirectory(directory_);
  if (!synced.ok()) return Fail(std::move(synced));
  name_durable_ = true;
  WriterLock lock(tables_mutex_);
  synced_size_ = size;
  return Status::Ok();
}

Status SegmentWriter::Seal() {
  MutexLock append_lock(append_mutex_);
  MutexLock sync_lock(sync_mutex_);
  SILTFS_RETURN_IF_ERROR(failure());
  SegmentFooter footer;
  {
    ReaderLock lock(tables_mutex_);
    if (sealed_ || footer_.blocks.empty()) {
      return Invalid(sealed_ ? "segment is sealed" : "a segment without a block can't be sealed")
          .At(path());
    }
    footer = footer_;
  }
  SILTFS_RETURN_IF_ERROR(SyncHoldingSyncMutex());
  const std::string bytes = EncodeSegmentFooter(footer, identity_);
  SILTFS_RETURN_IF_ERROR(WriteAtEnd(footer.trailer.data_end, AsBytes(bytes)));
  Status synced = file_->Sync();
  if (!synced.ok()) return Fail(std::move(synced));
  WriterLock lock(tables_mutex_);
  footer_.trailer = footer.trailer;
  size_ += bytes.size();
  synced_size_ = size_;
  sealed_ = true;
  return Status::Ok();
}

Status SegmentWriter::Fail(Status status) {
  WriterLock lock(tables_mutex_);
  if (!failed_) {
    failed_ = true;
    failure_ = std::move(status);
  } else {
    status.IgnoreError("the first failure counts");
  }
  return failure_;
}

uint64_t SegmentWriter::size() const {
  ReaderLock lock(tables_mutex_);
  return size_;
}

uint64_t SegmentWriter::synced_size() const {
  ReaderLock lock(tables_mutex_);
  return synced_size_;
}

SegmentTrailer SegmentWriter::totals() const {
  ReaderLock lock(tables_mutex_);
  return footer_.trailer;
}

bool SegmentWriter::sealed() const {
  ReaderLock lock(tables_mutex_);
  return sealed_;
}

Status SegmentWriter::failure() const {
  {
    ReaderLock lock(tables_mutex_);
    if (!failed_) return Status::Ok();
  }
  WriterLock lock(tables_mutex_);
  return failure_;
}

std::vector<FooterChunk> SegmentWriter::Window(uint32_t first_ordinal, uint32_t count) const {
  ReaderLock lock(tables_mutex_);
  size_t begin = std::min<size_t>(first_ordinal, footer_.chunks.size());
  size_t end = std::min<size_t>(begin + count, footer_.chunks.size());
  return {footer_.chunks.begin() + static_cast<ptrdiff_t>(begin),
          footer_.chunks.begin() + static_cast<ptrdiff_t>(end)};
}

std::optional<FooterChunk> SegmentWriter::FindChunk(uint32_t ordinal) const {
  ReaderLock lock(tables_mutex_);
  if (ordinal >= footer_.chunks.size()) return std::nullopt;
  return footer_.chunks[ordinal];
}

std::optional<BlockPlace> SegmentWriter::FindBlock(uint32_t ordinal) const {
  ReaderLock lock(tables_mutex_);
  return footer_.FindBlock(ordinal);
}

}  // namespace siltfs
