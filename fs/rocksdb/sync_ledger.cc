#include "fs/rocksdb/sync_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTFSSL";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumOffset = kSyncLedgerSlotSize - 8;
constexpr size_t kDurableSlots = 2;  // slots 0 and 1
constexpr size_t kSlots = 4;
constexpr std::string_view kManifest = "MANIFEST-";
constexpr std::string_view kLog = ".log";
constexpr size_t kEntrySize = kSyncLedgerNameSize + 8 + 8;
static_assert(24 + kSyncLedgerEntries * kEntrySize <= kChecksumOffset);
constexpr size_t kMarkOffset = kSlots * kSyncLedgerSlotSize;
constexpr std::string_view kOpen = "SILTFSLO";
constexpr std::string_view kClosed = "SILTFSLC";
constexpr size_t kReadSize = 64u << 10;

Status Damaged(const char* cause) { return Status(StatusCode::kCorruption, cause); }

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct ReadSlots {
  SyncLedgerState newest;   // the newest whole slot; empty, with serial 0, if there is none
  size_t next_durable = 0;  // the older of the synced slots, or one that is not whole
};

Result<ReadSlots> ReadLedger(const File& file) {
  ReadSlots slots;
  uint64_t newest_durable = 0;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    Bytes bytes(kSyncLedgerSlotSize);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(slot * kSyncLedgerSlotSize, bytes));
    auto state = DecodeSyncLedgerSlot(ByteView(bytes).first(got));
    if (!state.ok() && !state.status().Is(StatusCode::kCorruption)) return state.status();
    if (!state.ok()) continue;
    if (slot < kDurableSlots && state->serial > newest_durable) {
      newest_durable = state->serial;
      slots.next_durable = (slot + 1) % kDurableSlots;
    }
    if (slots.newest.serial < state->serial) slots.newest = std::move(*state);
  }
  return slots;
}

Result<bool> HasMark(const File& file, std::string_view mark) {
  Bytes bytes(mark.size());
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(kMarkOffset, bytes));
  return AsText(ByteView(bytes).first(got)) == mark;
}

// The checksum of a file's first bytes.
Result<uint64_t> ChecksumOfFirst(const File& file, uint64_t length) {
  StreamingChecksum checksum;
  Bytes bytes(kReadSize);
  for (uint64_t at = 0; at < length; at += bytes.size()) {
    const MutableByteView piece =
        MutableByteView(bytes).first(std::min<uint64_t>(bytes.size(), length - at));
    SILTFS_RETURN_IF_ERROR(ReadExactly(file, at, piece));
    checksum.Add(piece);
  }
  return checksum.value();
}

Status CheckFile(Env& env, const std::string& path, const SyncLedgerEntry& entry) {
  auto file = env.OpenFile(path, {OpenMode::kRead});
  if (!file.ok()) {
    if (file.status().Is(StatusCode::kNotFound)) return Status::Ok();
    return std::move(file).status();
  }
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
  if (size < entry.length) {
    return Status(StatusCode::kCorruption,
                  fmt::format("is {} bytes long: bytes below the {} that were synced are lost",
                              size, entry.length))
        .At(path);
  }
  SILTFS_ASSIGN_OR_RETURN(const uint64_t checksum, ChecksumOfFirst(**file, entry.length));
  if (checksum == entry.checksum) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("bytes below the {} that were synced are damaged", entry.length))
      .At(path);
}

}  // namespace

std::string EncodeSyncLedgerSlot(const SyncLedgerState& state) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(static_cast<uint32_t>(state.entries.size())).U64(state.serial);
  for (const SyncLedgerEntry& entry : state.entries) {
    out.Raw(entry.name).Zeros(kSyncLedgerNameSize - entry.name.size());
    out.U64(entry.length).U64(entry.checksum);
  }
  out.Zeros(kChecksumOffset - out.size());
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<SyncLedgerState> DecodeSyncLedgerSlot(ByteView bytes) {
  if (bytes.size() != kSyncLedgerSlotSize) return Damaged("a slot of the sync ledger is cut short");
  Decoder in(bytes);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is not a slot of a sync ledger");
  if (Decoder(bytes.subspan(kChecksumOffset)).U64() != Checksum(bytes.first(kChecksumOffset))) {
    return Damaged("a slot of the sync ledger has a wrong checksum");
  }
  const uint32_t version = in.U32();
  if (version != kVersion) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("the sync ledger is of version {}, and this siltfs understands {}",
                              version, kVersion));
  }
  const uint32_t count = in.U32();
  if (count > kSyncLedgerEntries) return Damaged("a slot of the sync ledger has too many entries");
  SyncLedgerState state;
  state.serial = in.U64();
  for (uint32_t i = 0; i < count; ++i) {
    SyncLedgerEntry& entry = state.entries.emplace_back();
    const std::string_view name = AsText(in.Raw(kSyncLedgerNameSize));
    entry.name = name.substr(0, name.find('\0'));
    entry.length = in.U64();
    entry.checksum = in.U64();
    if (entry.name.empty() || entry.name.find('/') != entry.name.npos) {
      return Damaged("a slot of the sync ledger has a malformed name");
    }
  }
  return state;
}

Result<SyncLedgerState> ReadSyncLedger(Env& env, const std::string& path) {
  auto file = env.OpenFile(path, {OpenMode::kRead});
  if (!file.ok()) {
    if (file.status().Is(StatusCode::kNotFound)) return SyncLedgerState{};
    return std::move(file).status();
  }
  auto read = ReadLedger(**file);
  if (!read.ok()) return std::move(read).status().At(path);
  return std::move(read->newest);
}

Result<std::vector<uint64_t>> FindDamagedSlots(Env& env, const std::string& path) {
  std::vector<uint64_t> damaged;
  auto file = env.OpenFile(path, {OpenMode::kRead});
  if (file.status().Is(StatusCode::kNotFound)) return damaged;
  if (!file.ok()) return std::move(file).status();
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
  SILTFS_ASSIGN_OR_RETURN(const bool closed, HasMark(**file, kClosed));
  for (uint64_t at = 0; at < kMarkOffset; at += kSyncLedgerSlotSize) {
    if (!closed && at + kSyncLedgerSlotSize <= size) continue;
    Bytes bytes(kSyncLedgerSlotSize);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, (*file)->Read(at, bytes));
    const auto state = DecodeSyncLedgerSlot(ByteView(bytes).first(got));
    if (state.status().Is(StatusCode::kCorruption)) damaged.push_back(at);
  }
  return damaged;
}

Status CheckSynced(Env& env, const std::string& directory, const SyncLedgerEntry& entry) {
  return CheckFile(env, JoinPath(directory, entry.name), entry);
}

Result<SyncLedgerState> CheckSyncLedger(Env& env, const std::string& path,
                                        const std::string& directory) {
  SILTFS_ASSIGN_OR_RETURN(SyncLedgerState state, ReadSyncLedger(env, path));
  for (const SyncLedgerEntry& entry : state.entries)
    SILTFS_RETURN_IF_ERROR(CheckSynced(env, directory, entry));
  return state;
}

Result<std::unique_ptr<SyncLedger>> SyncLedger::Open(Env& env, const std::string& path,
                                                     const std::string& directory) {
  auto file = env.OpenFile(path, {OpenMode::kReadWrite});
  const bool made = file.status().Is(StatusCode::kNotFound);
  if (made) file = env.OpenFile(path, {OpenMode::kCreate});
  if (!file.ok()) return std::move(file).status();
  auto read = ReadLedger(**file);
  if (!read.ok()) return std::move(read).status().At(path);
  SyncLedgerState state = std::move(read->newest);
  for (auto entry = state.entries.begin(); entry != state.entries.end();) {
    const auto info = env.GetFileInfo(JoinPath(directory, entry->name));
    const bool gone = info.status().Is(StatusCode::kNotFound);
    if (!gone && !info.ok()) return info.status();
    entry = gone ? state.entries.erase(entry) : entry + 1;
  }
  std::unique_ptr<SyncLedger> ledger(
      new SyncLedger(env, std::move(file).value(), std::move(state), read->next_durable));
  {
    // Older or unsynced slots may have entries of removed files. Overwrite these entries, because
    // the names of the files may be used again.
    MutexLock lock(ledger->mutex_);
    SILTFS_RETURN_IF_ERROR(ledger->MarkOpen());
    SILTFS_RETURN_IF_ERROR(ledger->WriteAllSlots());
  }
  if (made) SILTFS_RETURN_IF_ERROR(env.SyncDirectory(std::string(DirectoryOf(path))));
  return ledger;
}

SyncLedger::SyncLedger(Env& env, std::unique_ptr<File> file, SyncLedgerState state,
                       size_t next_durable)
    : env_(env), file_(std::move(file)), serial_(state.serial), next_durable_(next_durable) {
  for (const SyncLedgerEntry& entry : state.entries) {
    entries_[entry.name] = {entry.length, entry.checksum};
  }
}

bool SyncLedger::IsLog(const std::string& path) {
  const std::string_view name = NameOf(path);
  if (name.size() > kSyncLedgerNameSize) return false;
  return IsManifest(path) ||
         (name.ends_with(kLog) && AllDigits(name.substr(0, name.size() - kLog.size())));
}

bool SyncLedger::IsManifest(const std::string& path) {
  const std::string_view name = NameOf(path);
  return name.starts_with(kManifest) && AllDigits(name.substr(kManifest.size()));
}

Status SyncLedger::Withdraw(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string name(NameOf(path));
  entries_.erase(name);
  if (!written_.contains(name)) return Status::Ok();
  return WriteAllSlots();
}

Status SyncLedger::Synced(const std::string& path, uint64_t length, uint64_t checksum) {
  MutexLock lock(mutex_);
  Synchronized& entry = entries_[std::string(NameOf(path))];
  // A concurrent sync of at least as many bytes has ended earlier, so this one adds nothing.
  if (length <= entry.length) return Status::Ok();
  entry = {length, checksum};
  if (IsManifest(path)) return WriteDurableSlot();
  next_running_ = (next_running_ + 1) % (kSlots - kDurableSlots);
  WriteSlot(kDurableSlots + next_running_).IgnoreError("the ledger's older state is still true");
  return Status::Ok();
}

void SyncLedger::Removed(const std::string& path) {
  MutexLock lock(mutex_);
  entries_.erase(std::string(NameOf(path)));
}

void SyncLedger::MakeDurable() {
  MutexLock lock(mutex_);
  WriteDurableSlot().IgnoreError("the ledger's older state is still true");
}

void SyncLedger::Close() {
  MutexLock lock(mutex_);
  const Status settled = WriteDurableSlot();
  if (!settled.ok()) return settled.IgnoreError("the ledger's older state is still true");
  file_->Write(kMarkOffset, AsBytes(kClosed))
      .IgnoreError("without the mark, a damaged slot counts as torn");
}

Status SyncLedger::MarkOpen() {
  SILTFS_ASSIGN_OR_RETURN(const bool open, HasMark(*file_, kOpen));
  if (!open) SILTFS_RETURN_IF_ERROR(file_->Write(kMarkOffset, AsBytes(kOpen)));
  // Sync even if the mark is there, because the process that wrote it may have been killed before
  // its sync.
  return Sync();
}

std::string SyncLedger::NextSlot() {
  SyncLedgerState state;
  state.serial = ++serial_;
  // If there are too many entries, keep those with the last names in alphabetical order: the
  // entries of the MANIFESTs, and of the logs with the highest numbers. These are needed most.
  for (auto entry = entries_.rbegin();
       entry != entries_.rend() && state.entries.size() < kSyncLedgerEntries; ++entry) {
    if (entry->second.length == 0) continue;
    state.entries.push_back({entry->first, entry->second.length, entry->second.checksum});
    written_.insert(entry->first);
  }
  return EncodeSyncLedgerSlot(state);
}

Status SyncLedger::WriteSlot(size_t slot) {
  return file_->Write(slot * kSyncLedgerSlotSize, AsBytes(NextSlot()));
}

Status SyncLedger::Sync() {
  if (doubt_ != StatusCode::kOk) {
    return Status(StatusCode::kIoError, "a sync of the sync ledger failed before")
        .At(file_->path());
  }
  Status synced = file_->Sync();
  doubt_ = synced.code();
  return synced;
}

Status SyncLedger::ReplaceIfDoubtful() {
  if (doubt_ != StatusCode::kNoSpace) return Status::Ok();
  const std::string path = file_->path();
  written_.clear();
  std::string slots;
  for (size_t slot = 0; slot < kSlots; ++slot) slots += NextSlot();
  slots += kOpen;
  SILTFS_RETURN_IF_ERROR(ReplaceFile(env_, path, AsBytes(slots)));
  SILTFS_ASSIGN_OR_RETURN(file_, env_.OpenFile(path, {OpenMode::kReadWrite}));
  doubt_ = StatusCode::kOk;
  return Status::Ok();
}

Status SyncLedger::WriteDurableSlot() {
  SILTFS_RETURN_IF_ERROR(ReplaceIfDoubtful());
  SILTFS_RETURN_IF_ERROR(WriteSlot(next_durable_));
  SILTFS_RETURN_IF_ERROR(Sync());
  next_durable_ = (next_durable_ + 1) % kDurableSlots;
  return Status::Ok();
}

Status SyncLedger::WriteAllSlots() {
  std::set<std::string> present;
  for (const auto& [name, entry] : entries_) present.insert(name);
  SILTFS_RETURN_IF_ERROR(WriteDurableSlot());
  for (size_t slot = kDurableSlots; slot < kSlots; ++slot) SILTFS_RETURN_IF_ERROR(WriteSlot(slot));
  SILTFS_RETURN_IF_ERROR(WriteDurableSlot());
  written_ = std::move(present);
  return Status::Ok();
}

}  // namespace siltfs
