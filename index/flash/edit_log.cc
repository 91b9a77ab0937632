#include "index/flash/edit_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "index/flash/store_files.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kEditsName = "manifest.edits";
// Edits begin at multiples of this size, so that a torn write of one edit does not change the edit
// before it.
constexpr size_t kSector = 512;
constexpr size_t kHeaderSize = 24;  // checksum, generation, number, size of the edit
constexpr uint64_t kMostEdits = 128U << 20;
// A larger change is written as a base.
constexpr uint64_t kMostEditBytes = 1U << 20;
// A new base costs as much as many edits, so edits may take at least this space, and at least twice
// the size of the base.
constexpr uint64_t kUsualEdits = 64U << 10;

uint64_t MostBytesFor(uint64_t base_bytes) {
  return std::clamp(2 * base_bytes, kUsualEdits, kMostEdits / 2);
}

// An edit as it is in the file: header, edit, and zeros up to the next sector.
std::string Pack(uint64_t generation, uint32_t number, std::string_view edit) {
  Encoder checked;
  checked.U64(generation).U32(number).U32(static_cast<uint32_t>(edit.size())).Raw(edit);
  checked.Zeros((kSector - (kHeaderSize + edit.size()) % kSector) % kSector);
  Encoder out;
  out.U64(Checksum(checked.view())).Raw(checked.view());
  return out.Take();
}

struct Packed {
  uint32_t number = 0;
  ByteView edit;
  uint64_t size = 0;  // of the whole, in the file
};

// The edit of this generation at the beginning of `bytes`; empty if there is none.
std::optional<Packed> Unpack(ByteView bytes, uint64_t generation) {
  if (bytes.size() < kSector) return std::nullopt;
  Decoder in(bytes);
  const uint64_t checksum = in.U64();
  if (in.U64() != generation) return std::nullopt;
  Packed packed;
  packed.number = in.U32();
  const uint64_t size = in.U32();
  if (size > kMostEditBytes) return std::nullopt;
  packed.size = (kHeaderSize + size + kSector - 1) / kSector * kSector;
  if (packed.size > bytes.size()) return std::nullopt;
  const ByteView checked = bytes.subspan(sizeof checksum, packed.size - sizeof checksum);
  if (Checksum(checked) != checksum) return std::nullopt;
  packed.edit = bytes.subspan(kHeaderSize, size);
  const ByteView padding = bytes.subspan(kHeaderSize + size, packed.size - kHeaderSize - size);
  if (std::ranges::any_of(padding, [](uint8_t byte) { return byte != 0; })) return std::nullopt;
  return packed;
}

// Whether a sector of `bytes` begins a valid edit of this generation and of this number or a later
// one. After a crash few sectors look like the beginning of an edit, so more than that are damage,
// too.
bool HasLaterEdit(ByteView bytes, uint64_t generation, uint32_t number) {
  constexpr size_t kMostSimilar = 4096;
  size_t similar = 0;
  for (size_t at = 0; at + kSector <= bytes.size(); at += kSector) {
    Decoder header(bytes.subspan(at + sizeof(uint64_t)));
    if (header.U64() != generation || header.U32() < number) continue;
    if (Unpack(bytes.subspan(at), generation) || ++similar > kMostSimilar) return true;
  }
  return false;
}

}  // namespace

std::string EditLog::EditsPath() const { return JoinPath(directory_, kEditsName); }

Status EditLog::Read(uint64_t generation, uint64_t base_bytes, const Apply& apply) {
  const std::string path = EditsPath();
  auto bytes = ReadWholeFile(env_, path, kMostEdits);
  if (!bytes.ok()) {
    if (bytes.status().Is(StatusCode::kNotFound)) {
      return Status(StatusCode::kCorruption, "is missing").At(path);
    }
    if (bytes.status().Is(StatusCode::kFileTooLarge)) {
      return Status(StatusCode::kCorruption, "is too large for edits of a manifest").At(path);
    }
    return std::move(bytes).status();
  }
  generation_ = generation;
  most_bytes_ = MostBytesFor(base_bytes);
  SILTFS_ASSIGN_OR_RETURN(end_, ReadEdits(AsBytes(*bytes), apply));
  return Status::Ok();
}

// Applies all complete edits, and returns where they end.
Result<uint64_t> EditLog::ReadEdits(ByteView bytes, const Apply& apply) {
  uint64_t at = 0;
  while (const auto packed = Unpack(bytes.subspan(at), generation_)) {
    if (packed->number != number_) break;
    Status applied = apply(packed->edit);
    if (!applied.ok()) return std::move(applied).At(EditsPath(), at);
    last_edit_ = AsText(bytes.subspan(at, packed->size));
    ++number_;
    at += packed->size;
  }
  if (HasLaterEdit(bytes.subspan(at), generation_, number_)) {
    return Status(StatusCode::kCorruption, "has a damaged edit before others").At(EditsPath(), at);
  }
  return at;
}

Status EditLog::OpenEdits(OpenMode mode) {
  SILTFS_ASSIGN_OR_RETURN(edits_, env_.OpenFile(EditsPath(), {.mode = mode}));
  return Status::Ok();
}

Status EditLog::FinishRead(const WriteBase& write_base) {
  if (generation_ == 0) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(UnlessNoFiles(OpenEdits(OpenMode::kReadWrite)));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, edits_->Size());
  // A killed process may have renamed the base that was read, without syncing the directory.
  if (size == 0) return UnlessNoFiles(SyncNames(env_, directory_));
  // After a failed sync, the kernel may hold the last edit without ever writing it to the device.
  // So it is not enough to sync the edits.
  Status replaced = ReplaceBase(write_base);
  if (!replaced.Is(StatusCode::kNoSpace)) return UnlessNoFiles(std::move(replaced));
  replaced.IgnoreError("on a full disk the last edit is written again");
  SILTFS_RETURN_IF_ERROR(UnlessNoFiles(SyncNames(env_, directory_)));
  needs_base_ = false;
  // Earlier edits were synced before the last one was written.
  if (!last_edit_.empty()) {
    SILTFS_RETURN_IF_ERROR(edits_->Write(end_ - last_edit_.size(), AsBytes(last_edit_)));
    bytes_written_ += last_edit_.size();
  }
  if (size > end_) SILTFS_RETURN_IF_ERROR(edits_->Truncate(end_));
  return edits_->Sync();
}

Status EditLog::Replace(const WriteBase& write_base) {
  return UnlessNoFiles(ReplaceBase(write_base));
}

Status EditLog::ReplaceBase(const WriteBase& write_base) {
  needs_base_ = true;
  if (edits_ == nullptr) {
    Status made = OpenEdits(OpenMode::kCreate);
    // A crash may have left the file of a manifest that was never made.
    if (made.Is(StatusCode::kAlreadyExists)) made = OpenEdits(OpenMode::kReadWrite);
    SILTFS_RETURN_IF_ERROR(made);
  }
  // A base that failed may be on the device, except after kNoSpace. Its generation is not used
  // again, so that edits of another base cannot be applied to it.
  auto written = write_base(++generation_);
  if (!written.ok()) {
    if (written.status().Is(StatusCode::kNoSpace)) --generation_;
    return std::move(written).status();
  }
  bytes_written_ += *written;
  most_bytes_ = MostBytesFor(*written);
  number_ = 0;
  end_ = 0;
  // Edits of earlier generations do not count, so the truncation need not be durable.
  SILTFS_RETURN_IF_ERROR(ForGood(edits_->Truncate(0)));
  needs_base_ = false;
  return Status::Ok();
}

Status EditLog::Record(std::string_view edit, const WriteBase& write_base) {
  const std::string packed = Pack(generation_, number_, edit);
  if (needs_base_ || end_ + packed.size() > most_bytes_ || edit.size() > kMostEditBytes) {
    return Replace(write_base);
  }
  // The names of the listed stores must be durable before the edit is.
  SILTFS_RETURN_IF_ERROR(UnlessNoFiles(SyncNames(env_, directory_)));
  // If this fails, a repetition writes at the same place.
  SILTFS_RETURN_IF_ERROR(edits_->Write(end_, AsBytes(packed)));
  Status synced = edits_->Sync();
  if (!synced.ok()) {
    needs_base_ = true;
    return synced;
  }
  bytes_written_ += packed.size();
  end_ += packed.size();
  ++number_;
  return Status::Ok();
}

}  // namespace siltfs
