#include "index/silt/frozen_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTFRZ\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumSize = 8;
constexpr uint32_t kWrittenAtOnce = 32;                       // pages
constexpr uint32_t kChecksumsAtOnce = 8 * kFrozenBatchPages;  // page checksums read at once
constexpr size_t kFooterSize = 80;

uint64_t OffsetOfPage(uint32_t page) { return uint64_t{page} * kPageSize; }

std::string EncodeFooter(const FrozenFileInfo& info) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U8(static_cast<uint8_t>(info.file.kind));
  out.U8(static_cast<uint8_t>(info.bucket_bits));
  out.U8(static_cast<uint8_t>(info.layout.bits() - SlotLayout::kLeastBits)).U8(0);
  out.U32(info.file.partition).U32(info.pages).U64(info.file.id);
  out.U64(info.entries).U64(info.tombstones).U64(info.payload_bytes).U64(info.payload_checksum);
  out.Zeros(kFooterSize - kChecksumSize - out.size());
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<FrozenFileInfo> DecodeFooter(ByteView bytes) {
  const auto damaged = [](const char* what) { return Status(StatusCode::kCorruption, what); };
  const size_t checked = kFooterSize - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return damaged("has a footer with a wrong checksum");
  }
  Decoder in(bytes);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return damaged("is no frozen store");
  const uint32_t version = in.U32();
  if (version != kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a frozen store of version {}", version));
  }
  FrozenFileInfo info;
  info.file.kind = static_cast<StoreKind>(in.U8());
  info.bucket_bits = in.U8();
  const unsigned slot_bits = SlotLayout::kLeastBits + in.U8();
  uint64_t reserved = in.U8();
  info.file.partition = in.U32();
  info.pages = in.U32();
  info.file.id = in.U64();
  info.entries = in.U64();
  info.tombstones = in.U64();
  info.payload_bytes = in.U64();
  info.payload_checksum = in.U64();
  reserved |= in.U64();
  if (reserved != 0 || slot_bits > SlotLayout::kMostBits) {
    return damaged("has an invalid footer");
  }
  info.layout = SlotLayout(slot_bits);
  if (info.entries > uint64_t{info.pages} * info.layout.slots_per_page() ||
      info.tombstones > info.entries) {
    return damaged("has more entries than slots");
  }
  return info;
}

uint64_t FingerprintOf(ByteView page_checksums, std::string_view footer) {
  return Checksum(AsBytes(footer), Checksum(page_checksums));
}

uint64_t OffsetOfPayload(const FrozenFileInfo& info) {
  return OffsetOfPage(info.pages) + uint64_t{info.pages} * kChecksumSize;
}

uint64_t SizeOf(const FrozenFileInfo& info) {
  return OffsetOfPayload(info) + info.payload_bytes + kFooterSize;
}

}  // namespace

// --- Writing ---

FrozenFileWriter::FrozenFileWriter(Env& env, const std::string& directory,
                                   std::shared_ptr<File> file, const StoreFileId& id,
                                   Throttle& throttle, const SlotLayout& layout)
    : env_(env),
      directory_(directory),
      file_(std::move(file)),
      id_(id),
      throttle_(throttle),
      layout_(layout) {
  buffer_.reserve(OffsetOfPage(kWrittenAtOnce));
}

FrozenFileWriter::~FrozenFileWriter() {
  if (whole_) return;
  const Status removed = RemoveStoreFile(env_, directory_, id_);
  removed.IgnoreError("no manifest lists it, so the next opening removes it");
}

Status FrozenFileWriter::Sync() {
  SILTFS_RETURN_IF_ERROR(file_->Sync());
  whole_ = true;
  return Status::Ok();
}

Result<std::unique_ptr<FrozenFileWriter>> FrozenFileWriter::Create(Env& env,
                                                                   const std::string& directory,
                                                                   const StoreFileId& file,
                                                                   Throttle& throttle,
                                                                   const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto created, CreateStoreFile(env, directory, file));
  return std::unique_ptr<FrozenFileWriter>(
      new FrozenFileWriter(env, directory, std::move(created), file, throttle, layout));
}

Result<MutableByteView> FrozenFileWriter::NextSlot() {
  if (buffer_.size() == OffsetOfPage(kWrittenAtOnce)) SILTFS_RETURN_IF_ERROR(WriteBuffer());
  buffer_.resize(buffer_.size() + layout_.slot_size());
  ++slots_;
  return MutableByteView(buffer_).last(layout_.slot_size());
}

Status FrozenFileWriter::Append(const SlotEntry& entry) {
  SILTFS_ASSIGN_OR_RETURN(auto slot, NextSlot());
  EncodeSlot(slot, entry);
  return Status::Ok();
}

Status FrozenFileWriter::AppendEmpty() {
  auto slot = NextSlot();
  return slot.ok() ? Status::Ok() : std::move(slot).status();
}

// Writes the buffer, which holds whole pages or the last slots of the file. The rest of the last
// page is filled with zeros.
Status FrozenFileWriter::WriteBuffer() {
  if (buffer_.empty()) return Status::Ok();
  buffer_.resize((buffer_.size() + kPageSize - 1) / kPageSize * kPageSize);
  Encoder checksums;
  for (size_t page = 0; page < buffer_.size(); page += kPageSize) {
    checksums.U64(Checksum(ByteView(buffer_).subspan(page, kPageSize)));
  }
  page_checksums_ += checksums.text();
  throttle_.Pay(buffer_.size());
  SILTFS_RETURN_IF_ERROR(file_->Write(written_, buffer_));
  file_->BeginSync(written_, buffer_.size());
  written_ += buffer_.size();
  buffer_.clear();
  return Status::Ok();
}

Status FrozenFileWriter::Finish(FrozenFileInfo info, ByteView payload) {
  SILTFS_RETURN_IF_ERROR(WriteBuffer());
  Bytes().swap(buffer_);  // free the memory: Sync may come much later
  info.file = id_;
  info.layout = layout_;
  info.pages = static_cast<uint32_t>(written_ / kPageSize);
  info.payload_bytes = payload.size();
  info.payload_checksum = Checksum(payload);
  const std::string footer = EncodeFooter(info);
  fingerprint_ = FingerprintOf(AsBytes(page_checksums_), footer);
  Encoder out;
  out.Raw(page_checksums_).Raw(payload).Raw(footer);
  throttle_.Pay(out.size());
  SILTFS_RETURN_IF_ERROR(file_->Write(written_, out.view()));
  written_ += out.size();
  return Status::Ok();
}

// --- Reading ---

Result<std::shared_ptr<const FrozenFile>> FrozenFile::Open(Env& env, const std::string& directory,
                                                           const StoreFileId& id,
                                                           const SlotLayout& layout) {
  const std::string path = JoinPath(directory, StoreFileName(id));
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          OpenStoreFile(env, directory, id, OpenMode::kRead, /*direct=*/true));
  if (file == nullptr) return Status(StatusCode::kNotFound, "is missing").At(path);
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kFooterSize) return Status(StatusCode::kCorruption, "is too short").At(path);
  SILTFS_ASSIGN_OR_RETURN(const Bytes footer,
                          ReadStoreRange(*file, size - kFooterSize, kFooterSize));
  auto info = DecodeFooter(footer);
  if (!info.ok()) return std::move(info).status().At(path);
  // The checks of the offset and of payload_bytes come first, because the sum in SizeOf could
  // overflow for larger values.
  if (info->file != id || info->layout != layout || OffsetOfPayload(*info) > size ||
      info->payload_bytes > size || SizeOf(*info) != size) {
    return Status(StatusCode::kCorruption, "is not the store that its name says").At(path);
  }
  return std::shared_ptr<const FrozenFile>(new FrozenFile(std::move(file), *info));
}

uint64_t FrozenFile::size() const { return SizeOf(info_); }

Result<uint64_t> FrozenFile::ReadFingerprint() const {
  SILTFS_ASSIGN_OR_RETURN(
      const Bytes checksums,
      ReadStoreRange(*file_, OffsetOfPage(info_.pages), uint64_t{info_.pages} * kChecksumSize));
  return FingerprintOf(checksums, EncodeFooter(info_));
}

Result<Bytes> FrozenFile::ReadPayload(uint64_t most_bytes) const {
  if (info_.payload_bytes > most_bytes) {
    return Status(StatusCode::kCorruption, "has a filter or trie of an invalid size")
        .At(file_->path(), OffsetOfPayload(info_));
  }
  SILTFS_ASSIGN_OR_RETURN(Bytes payload,
                          ReadStoreRange(*file_, OffsetOfPayload(info_), info_.payload_bytes));
  if (Checksum(payload) != info_.payload_checksum) {
    return Status(StatusCode::kCorruption, "has a filter or trie with a wrong checksum")
        .At(file_->path(), OffsetOfPayload(info_));
  }
  return payload;
}

FrozenFileScan::FrozenFileScan(const FrozenFile& file, AlignedBuffer& buffer)
    : file_(file), buffer_(buffer) {
  const size_t size = OffsetOfPage(std::min(kFrozenBatchPages, file.info().pages) + 1);
  if (buffer_.size() < size) buffer_ = AlignedBuffer(size);
}

// Reads into the buffer. Bytes past the file's end become zeros, which match no checksum.
Result<MutableByteView> FrozenFileScan::Read(uint64_t offset, uint64_t size) {
  const MutableByteView out = buffer_.view().first(size);
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file_.file().Read(offset, out));
  std::fill(out.begin() + static_cast<ptrdiff_t>(got), out.end(), 0);
  return out;
}

// Reads all pages and their checksums, which follow the pages, with one read. Used if the pages fit
// one batch.
Status FrozenFileScan::ReadAll() {
  const uint32_t pages = file_.info().pages;
  SILTFS_ASSIGN_OR_RETURN(const MutableByteView got, Read(0, OffsetOfPage(pages + 1)));
  const auto checksums = got.subspan(OffsetOfPage(pages), pages * kChecksumSize);
  checksums_.assign(checksums.begin(), checksums.end());
  batch_end_ = pages;
  return Status::Ok();
}

Status FrozenFileScan::ReadBatch() {
  const FrozenFileInfo& info = file_.info();
  if (info.pages <= kFrozenBatchPages) return ReadAll();
  const uint32_t end = std::min(info.pages, next_ + kFrozenBatchPages);
  SILTFS_RETURN_IF_ERROR(Read(OffsetOfPage(next_), OffsetOfPage(end - next_)).status());
  if (end > checksums_first_ + checksums_.size() / kChecksumSize) {
    const uint32_t count = std::min(info.pages - next_, kChecksumsAtOnce);
    SILTFS_ASSIGN_OR_RETURN(
        checksums_, ReadStoreRange(file_.file(), OffsetOfPage(info.pages) + next_ * kChecksumSize,
                                   count * kChecksumSize));
    checksums_first_ = next_;
  }
  batch_first_ = next_;
  batch_end_ = end;
  return Status::Ok();
}

Result<std::optional<FrozenFileScan::Page>> FrozenFileScan::Next() {
  if (next_ == file_.info().pages) return std::optional<Page>();
  if (next_ == batch_end_) SILTFS_RETURN_IF_ERROR(ReadBatch());
  const uint32_t i = next_ - batch_first_;
  const ConstPageBytes bytes(buffer_.data() + OffsetOfPage(i), kPageSize);
  const ByteView checksums(checksums_);
  const uint64_t checksum =
      Decoder(checksums.subspan((next_ - checksums_first_) * kChecksumSize)).U64();
  return std::optional(
      Page{.number = next_++, .damaged = Checksum(bytes) != checksum, .bytes = bytes});
}

}  // namespace siltfs
