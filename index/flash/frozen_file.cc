#include "index/flash/frozen_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTFRZ\n";
constexpr uint32_t kVersion = 2;
constexpr size_t kChecksumSize = 8;
constexpr uint32_t kWrittenAtOnce = 32;                       // pages
constexpr uint32_t kChecksumsAtOnce = 8 * kFrozenBatchPages;  // page checksums read at once
constexpr size_t kFooterSize = 80;
constexpr uint8_t kHasFilter = 0x80;  // in the byte of the page index

uint64_t OffsetOfPage(uint32_t page) { return uint64_t{page} * kPageSize; }

std::string EncodeFooter(const FrozenFileInfo& info) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U8(static_cast<uint8_t>(info.file.kind));
  out.U8(static_cast<uint8_t>(info.bucket_bits));
  out.U8(info.layout.number());
  out.U8(static_cast<uint8_t>(static_cast<uint8_t>(info.page_index) |
                              (info.has_filter ? kHasFilter : 0)));
  out.U32(info.file.partition).U32(info.pages).U64(info.file.id);
  out.U64(info.entries).U64(info.tombstones).U64(info.payload_bytes).U64(info.payload_checksum);
  out.U64(info.pages_checksum).U64(Checksum(out.view()));
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
  if (version > kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a frozen store of version {}", version));
  }
  if (version < kVersion) return damaged("is a frozen store of an earlier version");
  FrozenFileInfo info;
  info.file.kind = static_cast<StoreKind>(in.U8());
  info.bucket_bits = in.U8();
  const uint8_t layout = in.U8();
  const uint8_t sorted = in.U8();
  const uint8_t page_index = sorted & ~kHasFilter;
  info.file.partition = in.U32();
  info.pages = in.U32();
  info.file.id = in.U64();
  info.entries = in.U64();
  info.tombstones = in.U64();
  info.payload_bytes = in.U64();
  info.payload_checksum = in.U64();
  info.pages_checksum = in.U64();
  if (layout > SlotLayout::kMostNumber || page_index > kMostPageIndexKind) {
    return damaged("has an invalid footer");
  }
  info.page_index = static_cast<PageIndexKind>(page_index);
  info.has_filter = (sorted & kHasFilter) != 0;
  info.layout = SlotLayout::OfNumber(layout);
  if (info.entries > uint64_t{info.pages} * info.layout.slots_per_page() ||
      info.tombstones > info.entries) {
    return damaged("has more entries than slots");
  }
  return info;
}

uint64_t OffsetOfPayload(const FrozenFileInfo& info) {
  const uint64_t checksums = info.layout.hashed() ? 0 : uint64_t{info.pages} * kChecksumSize;
  return OffsetOfPage(info.pages) + checksums;
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
      layout_(layout),
      in_page_(layout.slots_per_page()) {
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

Status FrozenFileWriter::BeginPage() {
  if (buffer_.size() == OffsetOfPage(kWrittenAtOnce)) SILTFS_RETURN_IF_ERROR(WriteBuffer());
  buffer_.resize(buffer_.size() + kPageSize);
  in_page_ = 0;
  ++pages_;
  return Status::Ok();
}

Result<MutableByteView> FrozenFileWriter::NextSlot() {
  if (room_in_page() == 0) SILTFS_RETURN_IF_ERROR(BeginPage());
  ++slots_;
  return SlotOfPage(layout_, PageBytes(MutableByteView(buffer_).last<kPageSize>()), in_page_++);
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

Status FrozenFileWriter::WriteBuffer() {
  if (buffer_.empty()) return Status::Ok();
  const uint64_t seed = PageSeedOf(id_);
  auto number = static_cast<uint32_t>(written_ / kPageSize);
  Encoder checksums;
  for (size_t at = 0; at < buffer_.size(); at += kPageSize) {
    const PageBytes page(buffer_.data() + at, kPageSize);
    if (layout_.hashed()) SealPage(page, number++, seed);
    const uint64_t checksum = layout_.hashed() ? Decoder(page).U64() : Checksum(page);
    checksums.U64(checksum);
    pages_checksum_ = Checksum(checksums.view().last(kChecksumSize), pages_checksum_);
  }
  if (!layout_.hashed()) page_checksums_ += checksums.text();
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
  info.pages_checksum = pages_checksum_;
  const std::string footer = EncodeFooter(info);
  fingerprint_ = Checksum(AsBytes(footer));
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

uint64_t FrozenFile::fingerprint() const { return Checksum(AsBytes(EncodeFooter(info_))); }

Result<Bytes> FrozenFile::ReadPayload(uint64_t most_bytes) const {
  if (info_.payload_bytes > most_bytes) {
    return Status(StatusCode::kCorruption, "has a filter or page index of an invalid size")
        .At(file_->path(), OffsetOfPayload(info_));
  }
  SILTFS_ASSIGN_OR_RETURN(Bytes payload,
                          ReadStoreRange(*file_, OffsetOfPayload(info_), info_.payload_bytes));
  if (Checksum(payload) != info_.payload_checksum) {
    return Status(StatusCode::kCorruption, "has a filter or page index with a wrong checksum")
        .At(file_->path(), OffsetOfPayload(info_));
  }
  return payload;
}

Result<Bytes> FrozenFile::ReadPayloadEnd(uint64_t size) const {
  return ReadStoreRange(*file_, OffsetOfPayload(info_) + info_.payload_bytes - size, size);
}

uint64_t FrozenFile::payload_offset() const { return OffsetOfPayload(info_); }

FrozenFileScan::FrozenFileScan(const FrozenFile& file, AlignedBuffer& buffer)
    : file_(file), pages_at_once_(kFrozenBatchPages) {
  const size_t size = OffsetOfPage(std::min(kFrozenBatchPages, file.info().pages) + 1);
  if (buffer.size() < size) buffer = AlignedBuffer(size);
  buffer_ = buffer.view();
}

// Reads into the buffer. Bytes past the file's end become zeros, which match no checksum.
Result<MutableByteView> FrozenFileScan::Read(uint64_t offset, uint64_t size) {
  const MutableByteView out = buffer_.first(size);
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file_.file().Read(offset, out));
  std::fill(out.begin() + static_cast<ptrdiff_t>(got), out.end(), 0);
  return out;
}

// Reads all pages, and the checksums that follow pages with named slots, with one read. Used if the
// pages fit one batch.
Status FrozenFileScan::ReadAll() {
  const uint32_t pages = file_.info().pages;
  batch_end_ = pages;
  if (file_.layout().hashed()) return Read(0, OffsetOfPage(pages)).status();
  SILTFS_ASSIGN_OR_RETURN(const MutableByteView got, Read(0, OffsetOfPage(pages + 1)));
  const auto checksums = got.subspan(OffsetOfPage(pages), pages * kChecksumSize);
  checksums_.assign(checksums.begin(), checksums.end());
  return Status::Ok();
}

Status FrozenFileScan::ReadBatch() {
  const FrozenFileInfo& info = file_.info();
  if (info.pages <= pages_at_once_) return ReadAll();
  const uint32_t end = std::min(info.pages, next_ + pages_at_once_);
  SILTFS_RETURN_IF_ERROR(Read(OffsetOfPage(next_), OffsetOfPage(end - next_)).status());
  const bool apart = !file_.layout().hashed();  // the checksums follow the pages
  if (apart && end > checksums_first_ + checksums_.size() / kChecksumSize) {
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
  const bool damaged = IsDamaged(next_, bytes);
  return std::optional(Page{.number = next_++, .damaged = damaged, .bytes = bytes});
}

bool FrozenFileScan::IsDamaged(uint32_t page, ConstPageBytes bytes) const {
  if (file_.layout().hashed()) return !file_.MayBePage(page, bytes);
  const ByteView checksums(checksums_);
  return Decoder(checksums.subspan((page - checksums_first_) * kChecksumSize)).U64() !=
         Checksum(bytes);
}

}  // namespace siltfs
