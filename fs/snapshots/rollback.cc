#include "fs/snapshots/rollback.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/lineage.h"
#include "fs/versions/version_key.h"
#include "fs/versions/version_restore.h"

namespace siltfs {
namespace {

// The most records that one write changes.
constexpr size_t kRecordsPerWrite = 1024;
// The key-value store writes a record to its log, to a table, and to another table in a merge,
// before it removes the older two.
constexpr uint64_t kWritesOfRecord = 3;
// No metadata are compressed better than this. So a restore writes fewer bytes than this multiple
// of the metadata's size on the disk.
constexpr uint64_t kBestCompression = 16;
// How long operations wait for those that have begun. A clone of a large tree takes longer, and
// other programs must not wait for its end.
constexpr std::chrono::milliseconds kOperationPatience{100};
// How long a rollback waits for programs' files to be closed.
constexpr std::chrono::seconds kOpenPatience{1};
constexpr std::chrono::milliseconds kPause{5};

int64_t& At(Counters& counters, Counter which) { return counters[static_cast<size_t>(which)]; }

// What must be added to these counters, so that they are those of the snapshot.
Counters Differences(const SnapshotRecord& snapshot, Counters counters) {
  Counters differences{};
  const auto set = [&](Counter which, int64_t value) {
    At(differences, which) = value - At(counters, which);
  };
  set(Counter::kLogicalBytes, snapshot.logical_bytes);
  set(Counter::kFiles, snapshot.files);
  set(Counter::kDirectories, snapshot.directories);
  set(Counter::kChunkReferences, snapshot.chunk_references);
  return differences;
}

void Uncount(const InodeRecord& inode, Counters& counters) {
  --At(counters, inode.IsDirectory() ? Counter::kDirectories : Counter::kFiles);
  if (!inode.IsRegular()) return;
  const ContentTally tally(inode);
  At(counters, Counter::kLogicalBytes) -= tally.allocated;
  At(counters, Counter::kChunkReferences) -= tally.references;
}

Status StillRunning() {
  return {StatusCode::kInUse,
          "an operation, such as a clone, is running; a rollback needs that no operation runs"};
}

}  // namespace

// The kernel knows the root directory without a lookup.
bool RestoredRecords::IsKnown(uint64_t inode) const {
  return inode == kRootInode || lookups_.Of(inode) > 0;
}

bool RestoredRecords::HasPages(uint64_t inode) const {
  const auto value = before_->Get(InodeKey(inode));
  if (!value.ok() || !*value) return false;
  const auto record = InodeRecord::Decode(**value);
  return record.ok() && (record->IsDirectory() || record->IsRegular());
}

void RestoredRecords::Add(std::string_view key) {
  uint64_t inode = 0;
  if (!IsVersionedKey(key, inode)) return;
  if (!IsKnown(inode)) return;
  const auto [changed, added] = inodes_.try_emplace(inode);
  if (added) changed->second.has_pages = HasPages(inode);
  changed->second.names |=
      IsKeyOf(Table::kDirectoryEntry, key) || IsKeyOf(Table::kDirectoryCookie, key);
  if (auto place = ParseDirectoryEntryKey(key)) names_.push_back(*std::move(place));
}

void RestoredRecords::ForgetInodes(KernelCache& cache) const {
  for (const auto& [inode, changed] : inodes_) cache.ForgetInode(inode, changed.has_pages);
}

Status RestoredRecords::FindRenewed(const KvSnapshot& restored) {
  for (const auto& [inode, changed] : inodes_) {
    if (inode == kRootInode) continue;
    SILTFS_ASSIGN_OR_RETURN(const auto value, restored.Get(InodeKey(inode)));
    if (!value) {
      renewed_.push_back(inode);
      continue;
    }
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(*value));
    if (!record.IsRegular()) continue;
    renewed_.push_back(inode);
    files_[inode] = {.parent = record.parent, .names_left = record.links};
  }
  return Status::Ok();
}

Status RestoredRecords::AddNamesOfFiles(const KvSnapshot& restored) {
  const auto names =
      restored.NewIteratorBelow(RangeOfLineage(Table::kDirectoryEntry, kLiveLineage).end);
  std::set<uint64_t> directories;
  for (const auto& [inode, file] : files_) directories.insert(file.parent);
  SILTFS_RETURN_IF_ERROR(AddNamesIn(directories, *names));
  // A file may have further names, and the parent is a hint only.
  const bool all =
      std::ranges::all_of(files_, [](const auto& file) { return file.second.names_left == 0; });
  if (all) return Status::Ok();
  const std::vector<uint64_t> known = lookups_.All();
  std::set<uint64_t> others(known.begin(), known.end());
  others.insert(kRootInode);
  for (const uint64_t directory : directories) others.erase(directory);
  return AddNamesIn(others, *names);
}

Status RestoredRecords::AddNamesIn(const std::set<uint64_t>& directories, KvIterator& names) {
  for (auto directory = directories.begin(); directory != directories.end();) {
    if (!IsKnown(*directory)) {
      ++directory;
      continue;
    }
    names.Seek(RangeOf(Table::kDirectoryEntry, *directory).begin);
    std::optional<NamePlace> place;
    for (; names.Valid(); names.Next()) {
      place = ParseDirectoryEntryKey(names.key());
      if (!place || place->directory != *directory) break;
      SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(names.value()));
      const auto file = files_.find(entry.inode);
      if (file == files_.end()) continue;
      if (file->second.names_left > 0) --file->second.names_left;
      names_.push_back(*std::move(place));
    }
    SILTFS_RETURN_IF_ERROR(names.status());
    if (!names.Valid() || !place) return Status::Ok();
    // Most known inodes are files, so a search for each would be slow.
    directory = directories.lower_bound(std::max(place->directory, *directory + 1));
  }
  return Status::Ok();
}

void RestoredRecords::ForgetNames(KernelCache& cache) const {
  for (const NamePlace& place : names_) cache.ForgetName(place.directory, place.name);
  // A listing that the kernel has read meanwhile may come from names that it had not forgotten.
  for (const auto& [inode, changed] : inodes_) {
    if (changed.names) cache.ForgetInode(inode, /*listing=*/true);
  }
}

Status Rollback::CheckRoom(const NumberedSnapshot& wanted) const {
  MetadataStore& metadata = store_.metadata();
  SILTFS_ASSIGN_OR_RETURN(const SpaceInfo space, store_.GetSpace());
  const uint64_t room = space.available_bytes / kWritesOfRecord;
  if (room / kBestCompression > metadata.DiskBytes()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const uint64_t needed,
                          BytesOfRestore(*metadata.CommittedSnapshot(), BoundsOf(wanted)));
  if (needed <= room) return Status::Ok();
  return {
      StatusCode::kNoSpace,
      fmt::format("a rollback to the snapshot \"{}\" needs up to {} MiB of the disk, and {} MiB "
                  "are available; free space, for instance by deleting other snapshots",
                  wanted.record.name, (needed * kWritesOfRecord >> 20) + 1,
                  space.available_bytes >> 20)};
}

Status Rollback::CheckNothingOpen() const {
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (inode->open_count > 0) {
      return {StatusCode::kInUse, fmt::format("a program has inode {} open; a rollback needs that "
                                              "no file is open",
                                              inode->number)};
    }
  }
  return Status::Ok();
}

Result<OperationGate::Closure> Rollback::AwaitNothingOpen() {
  const auto end = std::chrono::steady_clock::now() + kOpenPatience;
  for (;;) {
    {
      SILTFS_ASSIGN_OR_RETURN(std::optional<OperationGate::Closure> closure,
                              gate_.Close(kOperationPatience));
      const Status idle = closure ? CheckNothingOpen() : StillRunning();
      if (idle.ok()) return *std::move(closure);
      if (std::chrono::steady_clock::now() >= end) return idle;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<uint64_t>> Rollback::CommitInodes() {
  SILTFS_ASSIGN_OR_RETURN(std::vector<InodeNumber> removed, lifetimes_.RemoveUnopened());
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  return removed;
}

Status Rollback::Restore(const NumberedSnapshot& wanted,
                         const std::function<void(std::string_view key)>& on_changed) {
  SnapshotPort& port = *store_.metadata().snapshots();
  Counters differences = Differences(wanted.record, store_.metadata().counters());
  // The usage of quotas that the snapshot has includes the inodes that are dropped.
  QuotaDifferences quotas;
  VersionRestore restore(BoundsOf(wanted), [&](const InodeRecord& dropped) {
    Uncount(dropped, differences);
    if (dropped.quota == kNoQuota) return;
    const int64_t bytes = dropped.IsRegular() ? ContentTally(dropped).allocated : 0;
    quotas.emplace_back(dropped.quota, QuotaUsage{.bytes = -bytes, .files = -1});
  });
  for (bool more = true; more;) {
    const auto& interrupted = store_.options().interrupted;
    if (interrupted && interrupted())
      return {StatusCode::kInterrupted, "was interrupted; the next mount completes the rollback"};
    SILTFS_ASSIGN_OR_RETURN(more, port.RestoreSome(restore, kRecordsPerWrite, on_changed));
  }
  for (const InodePtr& inode : inodes_.Snapshot()) {
    const InodeLock lock(inode, InodeLock::Mode::kExclusive);
    inode->Invalidate();
    inodes_.Erase(inode->number);
  }
  SILTFS_RETURN_IF_ERROR(store_.metadata().Apply({}, differences, quotas).status());
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  return port.EndRestore(wanted.number);
}

}  // namespace siltfs
