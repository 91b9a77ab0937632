#include "store/env/space_reserve.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "store/env/files.h"

namespace siltfs {
namespace {

// Dividing the disk size by these numbers gives the reserve, the space left free beside it, and the
// remaining space below which the disk counts as nearly full.
constexpr uint64_t kReserveShare = 16;
constexpr uint64_t kSpareShare = 64;
constexpr uint64_t kNearlyFullShare = 16;
constexpr uint64_t kMostReserve = 256u << 20;
// Limits for small disks, which must keep most of their space for data.
constexpr uint64_t kLeastReserve = 32u << 20;
constexpr uint64_t kLargestShare = 8;
constexpr uint64_t kLeastOfSmallDisk = 16u << 20;
// Two metadata memtables, and some space for the index and a torn segment.
constexpr uint64_t kBytesToOpenAfterCrash = 10u << 20;
// As much for flushes and compactions of metadata while the store is in use, but at most half of
// the reserve without the part for opening. The other half is left for accepted blocks and the
// index.
constexpr uint64_t kBytesForMetadata = 10u << 20;
constexpr uint64_t kMostSpare = 64u << 20;
// Covers bytes accepted between two queries of the disk, and accepted bytes not written yet.
constexpr uint64_t kLeastSpare = 2u << 20;
constexpr uint64_t kLargestSpareShare = 16;
constexpr uint64_t kMostNearlyFull = 1u << 30;
constexpr uint64_t kPieces = 64;
constexpr uint64_t kPageBytes = 4096;
// Space needed to open a store and to commit deletions in it.
constexpr uint64_t kBytesToOpen = 256u << 10;

// Bytes accepted between two queries of the disk.
constexpr uint64_t kBytesPerLook = 1u << 20;
constexpr uint64_t kLookNextTime = UINT64_MAX / 2;

std::optional<uint64_t> NumberOf(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (name.size() > 1 && name.front() == '0') return std::nullopt;  // PathOf writes no such name
  return number;
}

}  // namespace

SpaceReserve::Options SpaceReserve::For(uint64_t disk_bytes) {
  Options options;
  const uint64_t wanted = std::clamp(disk_bytes / kReserveShare, kLeastReserve, kMostReserve);
  const uint64_t to_collect = std::min(kLeastOfSmallDisk, disk_bytes / 5 * 2);
  const uint64_t whole = std::min(wanted, std::max(disk_bytes / kLargestShare, to_collect));
  options.piece_bytes = std::max(whole / kPieces / kPageBytes * kPageBytes, kPageBytes);
  options.pieces = whole / options.piece_bytes;
  options.spare_bytes = std::max(std::min(disk_bytes / kSpareShare, kMostSpare),
                                 std::min(disk_bytes / kLargestSpareShare, kLeastSpare));
  options.nearly_full_bytes = std::min(disk_bytes / kNearlyFullShare, kMostNearlyFull);
  options.opening_bytes =
      std::min(kBytesToOpenAfterCrash, whole - std::min(whole, kLeastOfSmallDisk));
  options.metadata_bytes = std::min(kBytesForMetadata, (whole - options.opening_bytes) / 2);
  return options;
}

Result<std::unique_ptr<SpaceReserve>> SpaceReserve::Open(Env& env, Options options) {
  std::unique_ptr<SpaceReserve> reserve(new SpaceReserve(env, std::move(options)));
  auto entries = ListOrClear(env, reserve->options_.directory);
  if (entries.status().Is(StatusCode::kNotFound)) return reserve;
  if (!entries.ok()) return std::move(entries).status();
  MutexLock lock(reserve->mutex_);
  for (const DirectoryEntry& entry : *entries) {
    const auto number = NumberOf(entry.name);
    if (!number || entry.type != FileType::kRegular) continue;
    const auto info = env.GetFileInfo(reserve->PathOf(*number));
    if (info.ok() && info->allocated_bytes > 0) {
      reserve->pieces_.push_back({*number, info->allocated_bytes});
    } else {  // after a crash, only the name of an unsynced piece may be left
      env.RemoveFile(reserve->PathOf(*number)).IgnoreError("the next mount finds it");
    }
  }
  return reserve;
}

std::string SpaceReserve::PathOf(uint64_t number) const {
  return JoinPath(options_.directory, fmt::format("{}", number));
}

Status SpaceReserve::CheckRoom(uint64_t bytes) {
  if (accepted_.fetch_add(bytes) + bytes < kBytesPerLook) return Status::Ok();
  return Fill();
}

Status SpaceReserve::Fill() {
  MutexLock lock(mutex_);
  const Status room = LookAtDisk();
  accepted_ = room.ok() ? 0 : kLookNextTime;
  return room;
}

uint64_t SpaceReserve::ClaimedBytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.bytes;
  return bytes;
}

uint64_t SpaceReserve::MissingBytes() const {
  const uint64_t whole = options_.pieces * options_.piece_bytes;
  return whole - std::min(whole, ClaimedBytes());
}

Status SpaceReserve::LookAtDisk() {
  SILTFS_ASSIGN_OR_RETURN(DiskSpace disk, env_.GetDiskSpace(options_.store));
  while (!unsupported_ && MissingBytes() > 0) {
    const uint64_t bytes = std::min(options_.piece_bytes, MissingBytes());
    if (disk.available_bytes < options_.spare_bytes + bytes) break;
    const Status made = MakePiece(bytes);
    unsupported_ = made.Is(StatusCode::kUnsupported);
    if (unsupported_ || made.Is(StatusCode::kNoSpace)) break;
    SILTFS_RETURN_IF_ERROR(made);
    disk.available_bytes -= bytes;
  }
  const uint64_t wanted = options_.spare_bytes + MissingBytes();
  nearly_full_ = disk.available_bytes < wanted + options_.nearly_full_bytes;
  if (disk.available_bytes >= wanted) return Status::Ok();
  return Status(
             StatusCode::kNoSpace,
             fmt::format("the disk is full: of {} MiB, {} are left, besides a reserve of {} MiB "
                         "for deleting files",
                         disk.total_bytes >> 20, disk.available_bytes >> 20, ClaimedBytes() >> 20))
      .At(options_.store);
}

Status SpaceReserve::MakePiece(uint64_t bytes) {
  SILTFS_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, CreateFile());
  Status claimed = file->Preallocate(bytes);
  if (claimed.ok()) {
    pieces_.push_back({next_number_ - 1, bytes});
  } else {
    env_.RemoveFile(file->path()).IgnoreError("it is empty, and the next mount finds it");
  }
  return claimed;
}

Result<std::unique_ptr<File>> SpaceReserve::CreateFile() {
  for (;;) {
    auto opened = env_.OpenFile(PathOf(next_number_), {.mode = OpenMode::kCreate});
    if (opened.status().Is(StatusCode::kNotFound)) {
      SILTFS_RETURN_IF_ERROR(env_.CreateDirectory(options_.directory));
      continue;
    }
    // The name is taken by an unrelated file, or by a piece that could not be removed.
    const bool taken = opened.status().Is(StatusCode::kAlreadyExists);
    if (taken || opened.ok()) ++next_number_;
    if (!taken) return opened;
  }
}

uint64_t SpaceReserve::KeptFrom(Use use) const {
  const uint64_t of_metadata = use == Use::kData ? options_.metadata_bytes : 0;
  return phase_ == Phase::kInUse ? options_.opening_bytes + of_metadata : of_metadata / 2;
}

bool SpaceReserve::GiveUpPiece(Use use) {
  MutexLock lock(mutex_);
  accepted_ = kLookNextTime;
  nearly_full_ = true;
  const uint64_t kept = KeptFrom(use);
  while (!pieces_.empty() && ClaimedBytes() >= kept + pieces_.back().bytes) {
    const Status removed = env_.RemoveFile(PathOf(pieces_.back().number));
    pieces_.pop_back();
    if (removed.ok()) return true;
    removed.IgnoreError("the next piece may be removable");
  }
  return false;
}

void SpaceReserve::Restore() {
  MutexLock lock(mutex_);
  const uint64_t wanted = std::min(options_.opening_bytes + options_.metadata_bytes,
                                   options_.pieces * options_.piece_bytes);
  while (!unsupported_ && nearly_full_ && ClaimedBytes() < wanted) {
    const Status made = MakePiece(std::min(options_.piece_bytes, MissingBytes()));
    unsupported_ = made.Is(StatusCode::kUnsupported);
    if (made.ok()) continue;
    made.IgnoreError("Fill reports it, unless it is kNoSpace");
    return;
  }
}

void SpaceReserve::KeepOnly(uint64_t bytes) {
  MutexLock lock(mutex_);
  const Status looked = LookAtDisk();
  if (!looked.ok()) {
    looked.IgnoreError("then all pieces are kept");
    return;
  }
  if (nearly_full_ || pieces_.empty()) return;
  uint64_t missing = std::max(bytes, kBytesToOpen);
  while (ClaimedBytes() > missing) {
    env_.RemoveFile(PathOf(pieces_.back().number)).IgnoreError("then the next mount adopts it");
    pieces_.pop_back();
  }
  missing -= ClaimedBytes();
  if (missing == 0 || MissingBytes() < missing) return;
  MakePiece(missing).IgnoreError("other programs have taken the space to open the store");
}

uint64_t SpaceReserve::bytes() const {
  MutexLock lock(mutex_);
  return ClaimedBytes();
}

uint64_t SpaceReserve::bytes_to_give(Use use) const {
  MutexLock lock(mutex_);
  const uint64_t claimed = ClaimedBytes();
  return claimed - std::min(claimed, KeptFrom(use));
}

uint64_t SpaceReserve::Usable(uint64_t available_bytes) const {
  MutexLock lock(mutex_);
  return available_bytes - std::min(available_bytes, options_.spare_bytes + MissingBytes());
}

Result<bool> SpaceReserve::IsDirectoryOrNothing(Env& env, const std::string& directory) {
  const auto info = env.GetFileInfo(directory);
  if (info.status().Is(StatusCode::kNotFound)) return true;
  // If links are refused, a link is reported as kCorruption.
  if (info.status().Is(StatusCode::kCorruption)) return false;
  if (!info.ok()) return info.status();
  return info->type == FileType::kDirectory;
}

Result<uint64_t> SpaceReserve::BytesIn(Env& env, const std::string& directory) {
  SILTFS_ASSIGN_OR_RETURN(const bool whole, IsDirectoryOrNothing(env, directory));
  if (!whole) return uint64_t{0};
  auto entries = env.ListDirectory(directory);
  if (entries.status().Is(StatusCode::kNotFound)) return uint64_t{0};
  if (!entries.ok()) return std::move(entries).status();
  uint64_t bytes = 0;
  for (const DirectoryEntry& entry : *entries) {
    if (!NumberOf(entry.name) || entry.type != FileType::kRegular) continue;
    const auto info = env.GetFileInfo(JoinPath(directory, entry.name));
    if (info.status().Is(StatusCode::kNotFound)) continue;  // given up after the listing
    if (!info.ok()) return info.status();
    bytes += info->allocated_bytes;
  }
  return bytes;
}

}  // namespace siltfs
