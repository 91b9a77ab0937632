#include "fs/snapshots/rollback.h"

#include <fmt/format.h>

#include <set>
#include <thread>
#include <utility>

#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/versions/version_key.h"
#include "fs/versions/version_restore.h"

namespace siltfs {
namespace {

// The most records that one write changes.
constexpr size_t kRecordsPerWrite = 1024;
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
          "an operation, such as a clone, is running; a rollback needs that "
          "no operation runs"};
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
  // With `listing`, the kernel also drops the content of a file.
  for (const auto& [inode, changed] : inodes_) cache.ForgetInode(inode, changed.has_pages);
}

Status RestoredRecords::AddNamesOfFiles(const KvSnapshot& restored) {
  std::unordered_set<uint64_t> files;
  std::set<uint64_t> directories;
  bool several_names = false;
  for (const auto& [inode, changed] : inodes_) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, restored.Get(InodeKey(inode)));
    if (!value) continue;
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(*value));
    if (!record.IsRegular()) continue;
    files.insert(inode);
    directories.insert(record.parent);
    several_names |= record.links > 1 || record.parent == 0;
  }
  if (several_names) {
    directories = {kRootInode};
    for (const uint64_t inode : lookups_.All()) directories.insert(inode);
  }
  for (const uint64_t directory : directories) {
    if (IsKnown(directory)) SILTFS_RETURN_IF_ERROR(AddNamesIn(directory, restored, files));
  }
  return Status::Ok();
}

Status RestoredRecords::AddNamesIn(uint64_t directory, const KvSnapshot& restored,
                                   const std::unordered_set<uint64_t>& files) {
  const KeyRange range = RangeOf(Table::kDirectoryEntry, directory);
  const auto names = restored.NewIteratorBelow(range.end);
  for (names->Seek(range.begin); names->Valid(); names->Next()) {
    SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(names->value()));
    if (!files.contains(entry.inode)) continue;
    if (auto place = ParseDirectoryEntryKey(names->key())) names_.push_back(*std::move(place));
  }
  return names->status();
}

void RestoredRecords::ForgetNames(KernelCache& cache) const {
  for (const NamePlace& place : names_) cache.ForgetName(place.directory, place.name);
  // A listing that the kernel has read meanwhile may come from names that it had not forgotten.
  for (const auto& [inode, changed] : inodes_) {
    if (changed.names) cache.ForgetInode(inode, /*listing=*/true);
  }
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

Result<std::optional<Rollback::Closures>> Rollback::Close() {
  SILTFS_ASSIGN_OR_RETURN(auto opens, gates_.opens.Close(kOperationPatience));
  if (!opens) return std::optional<Closures>();
  SILTFS_ASSIGN_OR_RETURN(auto operations, gates_.operations.Close(kOperationPatience));
  if (!operations) return std::optional<Closures>();
  return std::optional<Closures>({*std::move(opens), *std::move(operations)});
}

Result<Rollback::Closures> Rollback::AwaitNothingOpen() {
  const auto end = std::chrono::steady_clock::now() + kOpenPatience;
  for (;;) {
    {
      SILTFS_ASSIGN_OR_RETURN(std::optional<Closures> closures, Close());
      const Status idle = closures ? CheckNothingOpen() : StillRunning();
      if (idle.ok()) return *std::move(closures);
      if (std::chrono::steady_clock::now() >= end) return idle;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Status Rollback::CommitInodes() {
  SILTFS_RETURN_IF_ERROR(lifetimes_.RemoveUnopened());
  return store_.metadata().CommitNow();
}

Status Rollback::Restore(const NumberedSnapshot& wanted,
                         const std::function<void(std::string_view key)>& on_changed) {
  SnapshotPort& port = *store_.metadata().snapshots();
  Counters differences = Differences(wanted.record, store_.metadata().counters());
  VersionRestore restore(BoundsOf(wanted), [&differences](const InodeRecord& dropped) {
    Uncount(dropped, differences);
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
  SILTFS_RETURN_IF_ERROR(store_.metadata().Apply({}, differences).status());
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  return port.EndRestore(wanted.number);
}

}  // namespace siltfs
