#include "fs/repair/repair_store.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "fs/guide/segment_guide.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshots.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/segment_check.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/recovery/segment_replacement.h"
#include "fs/repair/check_findings.h"
#include "fs/repair/content_repair.h"
#include "fs/repair/lineage_repair.h"
#include "fs/repair/metadata_rebuild.h"
#include "fs/repair/metadata_repair.h"
#include "fs/repair/repair_session.h"
#include "fs/repair/salvage_findings.h"
#include "fs/repair/segment_repair_run.h"
#include "fs/repair/superblock_repair.h"
#include "fs/repair/version_repair.h"
#include "fs/versions/snapshot_paths.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// A repair may reveal further damage, so the checks and repairs are repeated at most this often.
constexpr int kMostRounds = 6;

class Repair {
 public:
  Repair(Env& env, const RepairOptions& options)
      : env_(env),
        options_(options),
        store_(options.check.store),
        segments_(OpenSegmentStore(env, store_, options.check.segments)) {}

  Result<RepairReport> Run();

 private:
  bool all() const { return options_.mode == RepairMode::kAll; }
  Status Lock();
  Result<CheckFindings> Check();
  // Returns whether anything was changed.
  Result<bool> Round(const CheckFindings& found);
  Result<bool> RepairSuperblock(const CheckFindings& found);
  Result<bool> RepairLock(const CheckFindings& found);
  Result<bool> RepairReserve(const CheckFindings& found);
  // Whether all or part of the metadata cannot be read. With kSafe a checksum finding alone does
  // not stop the other repairs.
  bool IsUnreadable(const CheckFindings& found) const {
    return found.HasAnyOf({"metadata-open", "metadata-read", "metadata-records"}) ||
           (all() && found.Has("metadata-checksum"));
  }
  // Salvages unreadable metadata; returns whether anything was changed.
  Result<bool> SalvageUnreadable();
  void Tell(Finding finding);
  void Remark(std::string sentence) { report_.remarks.push_back(std::move(sentence)); }
  Result<bool> RepairInside(const CheckFindings& found);
  Status OpenSession();
  Status CloseSession();
  // Whether the metadata has segments with data.
  Result<bool> HasSegments();
  Result<bool> RepairSnapshotsOf(const CheckFindings& found);
  Result<bool> RepairMetadataOf(const CheckFindings& found);
  Result<bool> RepairContentsOf(const CheckFindings& found);
  // Mounts and unmounts the store internally. False if the store cannot be opened.
  Result<bool> Recover();
  Result<bool> RepairIndex();
  Status NoteLost(std::vector<LostRange> lost);
  void Note(const CheckFindings& found);
  RepairReport Report(const CheckFindings& last);

  Env& env_;
  const RepairOptions& options_;
  const std::string& store_;
  const std::unique_ptr<SegmentStore> segments_;
  std::unique_ptr<FileLock> lock_;
  std::optional<RepairSession> session_;
  RepairReport report_;
  std::set<FindingPlace> known_;
  bool salvaged_ = false;
};

Status Repair::Lock() {
  const auto info = env_.GetFileInfo(LockPath(store_));
  // Another object in the place of the lock file is a finding.
  if (info.ok() && info->type != FileType::kRegular) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(lock_, env_.LockFile(LockPath(store_)));
  return Status::Ok();
}

Result<CheckFindings> Repair::Check() {
  CheckOptions options = options_.check;
  if (options.on_finding) {
    options.on_finding = [this](const Finding& finding) {
      if (!known_.contains(PlaceOf(finding))) options_.check.on_finding(finding);
    };
  }
  const CheckOptions& check = options_.check;
  const uint64_t unanswered = check.segments == nullptr ? 0 : check.segments->UnansweredReads();
  SILTFS_ASSIGN_OR_RETURN(CheckFindings found,
                          CheckAndKeep(env_, std::move(options), kMostFindingsKept));
  // A repair would drop what could not be read.
  if (check.segments != nullptr) SILTFS_RETURN_IF_ERROR(CheckAnswered(*check.segments, unanswered));
  Note(found);
  return found;
}

void Repair::Note(const CheckFindings& found) {
  uint64_t fresh = 0;
  for (const Finding& finding : found.findings) {
    if (!known_.insert(PlaceOf(finding)).second) continue;
    ++fresh;
    if (report_.findings.size() < kMostFindingsKept) report_.findings.push_back({finding, false});
  }
  const bool first = report_.found == 0;
  report_.found = first ? found.report.findings : report_.found + fresh;
}

Result<RepairReport> Repair::Run() {
  // Check this before Lock, which would create a lock file even without a store.
  bool any_copy = false;
  for (int copy = 0; copy < 2; ++copy)
    any_copy |= !ReadSuperblockCopy(env_, store_, copy).status().Is(StatusCode::kNotFound);
  if (!any_copy) return NoStoreAt(env_, store_);
  SILTFS_RETURN_IF_ERROR(Lock());
  SILTFS_ASSIGN_OR_RETURN(CheckFindings found, Check());
  // If the metadata is readable, the results of an interrupted rebuild are not needed.
  if (all() && !IsUnreadable(found)) SILTFS_RETURN_IF_ERROR(RemoveRebuildLeftovers(env_, store_));
  std::set<FindingPlace> before;
  for (int round = 0; round < kMostRounds && !found.findings.empty(); ++round) {
    std::set<FindingPlace> places = found.Places();
    if (places == before) break;  // the last round changed no finding
    before = std::move(places);
    SILTFS_ASSIGN_OR_RETURN(const bool changed, Round(found));
    if (!changed) break;
    SILTFS_ASSIGN_OR_RETURN(found, Check());
  }
  // What a crash has left unfinished is not a finding. A mount and an unmount recover it here.
  if (found.findings.empty() && !found.report.clean_shutdown.value_or(true)) {
    SILTFS_ASSIGN_OR_RETURN(const bool recovered, Recover());
    if (recovered) {
      SILTFS_ASSIGN_OR_RETURN(found, Check());
    }
  }
  return Report(found);
}

RepairReport Repair::Report(const CheckFindings& last) {
  const std::set<FindingPlace> left = last.Places();
  for (RepairedFinding& finding : report_.findings)
    finding.repaired = !left.contains(PlaceOf(finding.finding));
  report_.checked = last.report;
  report_.left = last.report.findings;
  report_.found = std::max(report_.found, report_.left);
  return std::move(report_);
}

Result<bool> Repair::Round(const CheckFindings& found) {
  // All other findings rely on the superblock that the check has used. This superblock may belong
  // to another store, so resolve the mismatch first.
  if (found.Has("superblock-mismatch")) return ResolveSuperblockMismatch(env_, store_, *segments_);
  if (found.Has("superblock")) return false;
  // Metadata that is older than the store must not be changed. But if metadata is also unreadable,
  // the check may have found "metadata-lost" only because it could not read the metadata.
  if (found.Has("metadata-lost") && !IsUnreadable(found)) return false;
  SILTFS_ASSIGN_OR_RETURN(bool changed, RepairSuperblock(found));
  SILTFS_ASSIGN_OR_RETURN(const bool lock, RepairLock(found));
  SILTFS_ASSIGN_OR_RETURN(const bool reserve, RepairReserve(found));
  changed |= lock || reserve;
  // The other repairs need the metadata, so salvage it first. The next round repairs the rest.
  if (IsUnreadable(found)) {
    SILTFS_ASSIGN_OR_RETURN(const bool salvaged, SalvageUnreadable());
    return changed | salvaged;
  }
  SILTFS_ASSIGN_OR_RETURN(const bool inside, RepairInside(found));
  return changed | inside;
}

Result<bool> Repair::RepairSuperblock(const CheckFindings& found) {
  if (!found.Has("superblock-copy")) return false;
  for (int copy = 0; copy < 2; ++copy) {
    // A directory in the copy's place prevents writing the file.
    const auto info = env_.GetFileInfo(SuperblockPath(store_, copy));
    if (info.ok() && info->type == FileType::kDirectory)
      SILTFS_RETURN_IF_ERROR(env_.RemoveDirectory(SuperblockPath(store_, copy)));
  }
  SILTFS_RETURN_IF_ERROR(RepairSuperblockCopies(env_, store_));
  return true;
}

// Removes an object in the place of the lock file. A directory that is not empty stays, because it
// may hold user data.
Result<bool> Repair::RepairLock(const CheckFindings& found) {
  if (!found.Has("lock")) return false;
  const std::string path = LockPath(store_);
  SILTFS_ASSIGN_OR_RETURN(const FileInfo info, env_.GetFileInfo(path));
  const bool is_directory = info.type == FileType::kDirectory;
  const Status removed = is_directory ? env_.RemoveDirectory(path) : env_.RemoveFile(path);
  if (!removed.ok()) {
    removed.IgnoreError("the next check reports it");
    return false;
  }
  SILTFS_RETURN_IF_ERROR(Lock());
  return true;
}

// The reserve holds no data, so any object in its place is removed.
Result<bool> Repair::RepairReserve(const CheckFindings& found) {
  if (!found.Has("reserve")) return false;
  SILTFS_RETURN_IF_ERROR(env_.RemoveFile(ReservePath(store_)));
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(store_));
  return true;
}

Result<bool> Repair::SalvageUnreadable() {
  if (std::exchange(salvaged_, true)) return false;
  if (!all()) {
    Remark(
        "metadata that cannot be read is left as it is: siltfs fsck -y salvages what can be read "
        "of it");
    return false;
  }
  MetadataRebuildOptions options;
  options.store = store_;
  options.segments = options_.check.segments;
  options.on_progress = [this](uint64_t entries) {
    const CheckOptions& check = options_.check;
    if (check.on_progress) check.on_progress({.phase = "metadata", .done = entries, .total = 0});
    if (!check.interrupted || !check.interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted, "the repair was interrupted").At(store_);
  };
  const auto rebuilt = RebuildMetadata(env_, options);
  if (rebuilt.status().Is(StatusCode::kCorruption)) {
    Remark(rebuilt.status().ToString());
    return false;
  }
  if (!rebuilt.ok()) return rebuilt.status();
  for (Finding& finding : FindingsOf(*rebuilt, MetadataPath(store_))) Tell(std::move(finding));
  if (rebuilt->kept) {
    Remark("the damaged metadata is kept in " + DamagedMetadataPath(store_) +
           ": it may be removed");
  }
  return true;
}

// Reports a finding made by a repair step.
void Repair::Tell(Finding finding) {
  if (!known_.insert(PlaceOf(finding)).second) return;
  if (options_.check.on_finding) options_.check.on_finding(finding);
  ++report_.found;
  if (report_.findings.size() < kMostFindingsKept)
    report_.findings.push_back({std::move(finding), false});
}

Status Repair::OpenSession() {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env_, store_));
  session_.emplace(RepairSession{.env = env_,
                                 .store = store_,
                                 .segments = *segments_,
                                 .all = all(),
                                 .superblock = state.superblock,
                                 .kv = nullptr,
                                 .records = {}});
  SILTFS_ASSIGN_OR_RETURN(
      session_->kv, OpenStoreMetadata(env_, state.superblock, store_, KvStoreOptions::Mode::kOpen));
  SILTFS_ASSIGN_OR_RETURN(session_->records, ReadStoreRecords(*session_->kv));
  std::vector<Mutation> changes;  // unused: recovery writes them
  const StoreIdentity identity{store_, state.superblock.uuid, session_->records.last_commit};
  ResolveReplacements(*segments_, identity, session_->records.replacements,
                      session_->records.segments, changes);
  return Status::Ok();
}

Status Repair::CloseSession() {
  const Status closed = session_->kv->CloseCleanly();
  session_.reset();
  return closed;
}

Result<bool> Repair::HasSegments() {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env_, store_));
  SILTFS_ASSIGN_OR_RETURN(const auto kv, OpenStoreMetadata(env_, state.superblock, store_,
                                                           KvStoreOptions::Mode::kReadOnly));
  SILTFS_ASSIGN_OR_RETURN(const StoreRecords records, ReadStoreRecords(*kv));
  return HoldAnything(records.segments);
}

Result<bool> Repair::RepairInside(const CheckFindings& found) {
  SegmentFindings segments = found.BySegment(*segments_);
  const bool no_segments = found.Has("segments-missing");
  if (no_segments) {
    SILTFS_ASSIGN_OR_RETURN(const bool has_segments, HasSegments());
    if (has_segments) {
      Remark(segments_->name() +
             ": a repair would drop all file content in the missing segments, so nothing "
             "is repaired: is a file system not mounted?");
      return false;
    }
    SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env_, store_));
  }
  SILTFS_RETURN_IF_ERROR(OpenSession());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t rewritten, RepairSegments(*session_, segments));
  // First, because the repairs of records keep versions for the snapshots.
  SILTFS_ASSIGN_OR_RETURN(const bool snapshots, RepairSnapshotsOf(found));
  SILTFS_ASSIGN_OR_RETURN(const bool metadata, RepairMetadataOf(found));
  SILTFS_ASSIGN_OR_RETURN(const bool contents, RepairContentsOf(found));
  uint64_t dropped = 0;
  if (all()) {
    SILTFS_ASSIGN_OR_RETURN(dropped, DropDamage(*session_, options_.check, segments));
  }
  const bool replaced = !session_->records.replacements.empty();
  SILTFS_RETURN_IF_ERROR(CloseSession());
  // Opening and closing the metadata has repaired the ledger and the log.
  bool changed = rewritten > 0 || no_segments || snapshots || metadata || contents || dropped > 0 ||
                 replaced || found.HasAnyOf({"metadata-ledger", "metadata-log"});
  const bool index = found.HasAnyWith("index-") || found.Has("not-indexed") || dropped > 0;
  const bool unclean = !found.report.clean_shutdown.value_or(true);
  if (contents || replaced || (index && unclean)) {
    SILTFS_ASSIGN_OR_RETURN(const bool recovered, Recover());
    changed |= recovered;
  }
  if (index) {
    SILTFS_ASSIGN_OR_RETURN(const bool made, RepairIndex());
    changed |= made;
  } else if (found.Has("guide")) {
    // The next mount fills it again.
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env_, GuidePath(store_)));
    changed = true;
  }
  if (found.Has("lsh")) {
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env_, LshPath(store_)));
    changed = true;
  }
  return changed;
}

Result<bool> Repair::RepairSnapshotsOf(const CheckFindings& found) {
  if (!all()) return false;
  const bool records = found.Has("snapshot-record");
  uint64_t changes = 0;
  if (found.HasAnyOf({"snapshot-record", "snapshot-version"})) {
    SILTFS_ASSIGN_OR_RETURN(const VersionRepairResult result,
                            RepairVersions(*session_->kv, env_.NowNanoseconds()));
    std::vector<LostRange> lost;
    for (const VersionRepairResult::Lost& version : result.lost)
      lost.push_back({.inode = version.inode, .snapshot = version.snapshot});
    SILTFS_RETURN_IF_ERROR(NoteLost(std::move(lost)));
    changes += result.changes;
  }
  if (records || found.Has("lineage-record")) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t lineages, RepairLineages(*session_->kv, records));
    changes += lineages;
  }
  return changes > 0;
}

Result<bool> Repair::RepairMetadataOf(const CheckFindings& found) {
  constexpr std::array<std::string_view, 26> kCodes = {"counter",
                                                       "quota",
                                                       "root",
                                                       "inode-record",
                                                       "inode-number",
                                                       "inode-missing",
                                                       "unreachable",
                                                       "link-count",
                                                       "orphan",
                                                       "xattr-count",
                                                       "name-record",
                                                       "cookie-record",
                                                       "name-without-cookie",
                                                       "cookie-without-name",
                                                       "dangling-name",
                                                       "name-type",
                                                       "entry-count",
                                                       "next-cookie",
                                                       "parent",
                                                       "directory-cycle",
                                                       "not-a-directory",
                                                       "overlay-record",
                                                       "overlay-overlap",
                                                       "overlay-totals",
                                                       "overlay-end",
                                                       "not-a-file"};
  const bool any = found.Has("metadata-key") ||
                   std::any_of(kCodes.begin(), kCodes.end(),
                               [&found](std::string_view code) { return found.Has(code); });
  if (!any) return false;
  MetadataRepairOptions options;
  options.all = all();
  options.now = env_.NowNanoseconds();
  options.owner = options_.owner;
  for (const Finding& finding : found.findings) {
    if (finding.code == "directory-cycle" && finding.inode) options.detached.insert(*finding.inode);
  }
  SILTFS_ASSIGN_OR_RETURN(MetadataRepairResult result, RepairMetadata(*session_->kv, options));
  std::vector<LostRange> lost;
  for (const uint64_t inode : result.lost) lost.push_back({.inode = inode});
  SILTFS_RETURN_IF_ERROR(NoteLost(std::move(lost)));
  return result.changes > 0;
}

Result<bool> Repair::RepairContentsOf(const CheckFindings& found) {
  if (!all() || found.lost.empty()) return false;
  SILTFS_ASSIGN_OR_RETURN(auto lost, RepairContents(*session_, options_.check, found.lost));
  const bool has_versions = std::any_of(lost.begin(), lost.end(),
                                        [](const LostRange& range) { return range.snapshot != 0; });
  if (has_versions) SILTFS_RETURN_IF_ERROR(RelistVersions(*session_->kv).status());
  // The recipes and overlays have changed, so the totals that follow from them are computed again.
  SILTFS_ASSIGN_OR_RETURN(const auto statistics,
                          RepairMetadata(*session_->kv, {.all = false, .now = 0, .detached = {}}));
  const bool changed = !lost.empty() || statistics.changes > 0;
  SILTFS_RETURN_IF_ERROR(NoteLost(std::move(lost)));
  return changed;
}

Status Repair::NoteLost(std::vector<LostRange> lost) {
  if (lost.empty()) return Status::Ok();
  std::set<FileVersion> files;
  for (const LostRange& range : lost) files.insert({range.inode, range.snapshot});
  const auto metadata = session_->kv->Snapshot();
  SILTFS_ASSIGN_OR_RETURN(const auto names,
                          NameFiles(*metadata, files, "/" + std::string(kSnapshotDirectoryName)));
  for (const LostRange& range : lost) {
    // Adjacent ranges are reported as one.
    if (!report_.lost.empty()) {
      LostRange& last = report_.lost.back().range;
      if (last.inode == range.inode && last.snapshot == range.snapshot &&
          last.offset + last.length == range.offset && range.length > 0) {
        last.length += range.length;
        continue;
      }
    }
    report_.lost.push_back({names.at({range.inode, range.snapshot}).path, range});
  }
  return Status::Ok();
}

Result<bool> Repair::Recover() {
  lock_.reset();
  FileSystemOptions open;
  open.store = store_;
  open.segments = options_.check.segments;
  Status recovered = Status::Ok();
  {
    auto opened = FileSystem::Open(env_, open);
    recovered = opened.ok() ? (*opened)->Close() : std::move(opened).status();
  }
  SILTFS_RETURN_IF_ERROR(Lock());
  if (recovered.ok()) return true;
  // If damage prevents opening, the next check reports it. Other errors, such as those of a failing
  // device, end the repair.
  if (recovered.Is(StatusCode::kCorruption)) return false;
  return recovered;
}

Result<bool> Repair::RepairIndex() {
  IndexRebuildOptions options;
  options.store = store_;
  options.segments = options_.check.segments;
  options.interrupted = options_.check.interrupted;
  options.on_progress = [this](uint64_t done, uint64_t total) {
    if (options_.check.on_progress)
      options_.check.on_progress({.phase = "index", .done = done, .total = total});
  };
  const auto rebuilt = RebuildLockedIndex(env_, options);
  if (rebuilt.ok()) return true;
  // The next check reports what prevents the rebuild.
  if (rebuilt.status().Is(StatusCode::kCorruption) ||
      rebuilt.status().Is(StatusCode::kInvalidArgument)) {
    return false;
  }
  return rebuilt.status();
}

}  // namespace

Result<RepairReport> RepairStore(Env& env, const RepairOptions& options) {
  return Repair(env, options).Run();
}

}  // namespace siltfs
