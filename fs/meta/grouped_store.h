// The MetadataStore over a key-value store: groups, commits, and snapshots.
//
// Thread-safety, errors and durability: as metadata_store.h, snapshot_port.h and lineage_port.h.
// Ownership: owns the key-value store.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fs/meta/commit_pace.h"
#include "fs/meta/group.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/snapshot_state.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// A group and its state. Owned by the store; the map is shared with Views.
struct NumberedGroup {
  explicit NumberedGroup(uint64_t its_number) : number(its_number) {}

  const uint64_t number;
  const std::shared_ptr<Group> group = std::make_shared<Group>();
  Counters differences{};
  QuotaSums quotas;
  std::vector<WantedSnapshot> wanted;
  bool used = false;  // an Apply or Join has added to it
  // Valid if `used`.
  CommitPace::Time first_change{};
  CommitPace::Time last_change{};
};

class GroupedStore final : public MetadataStore, public SnapshotPort, public LineagePort {
 public:
  GroupedStore(std::unique_ptr<KvStore> kv, const MetadataOptions& options, uint64_t last_commit,
               const Counters& counters, SnapshotState snapshots)
      : options_(options),
        clock_(options.clock ? options.clock : SteadyClock),
        kv_(std::move(kv)),
        snapshot_(kv_->Snapshot()),
        snapshots_(std::make_shared<const SnapshotState>(std::move(snapshots))),
        open_(std::make_unique<NumberedGroup>(last_commit + 1)),
        pace_(options.commit_interval, options.quiet_interval),
        published_(last_commit),
        completed_(last_commit),
        committed_counters_(counters),
        counters_(counters) {
    if (!options_.read_only) commit_thread_ = std::thread([this] { CommitLoop(); });
  }

  ~GroupedStore() override { EndCommitThread(); }

  void SetParticipant(CommitParticipant* participant) override;
  View Pin() const override;
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override;
  Result<std::optional<std::string>> Get(std::string_view key) const override;
  Status WaitForRoom() override;
  using MetadataStore::Apply;
  using MetadataStore::ApplyTo;
  Result<uint64_t> Apply(std::vector<Mutation> mutations, const Counters& differences,
                         const QuotaDifferences& quotas) override;
  Result<uint64_t> Join() override { return Apply({}, {}, {}); }
  Status ApplyTo(uint64_t number, std::vector<Mutation> mutations, const Counters& differences,
                 const QuotaDifferences& quotas) override;
  void SetDeferredChanges(DeferredChanges* late) override;
  Counters counters() const override;
  Status Commit(uint64_t number) override;
  Status CommitAll() override;
  Status CommitAllLocally() override;
  Status AwaitShipped() override SILTFS_EXCLUDES(mutex_);
  Status WriteThrough(const std::vector<Mutation>& mutations) override;
  Result<std::unique_ptr<KvLoad>> NewLoad() override;
  uint64_t last_commit() const override;
  Status failure() const override;
  uint64_t DiskBytes() const override { return kv_->DiskBytes(); }
  void EndCommits() override { EndCommitThread(); }
  Status Close() override;

  SnapshotPort* snapshots() override { return this; }
  LineagePort* lineages() override { return this; }
  std::vector<NumberedSnapshot> Snapshots() const override;
  Result<NumberedSnapshot> CreateSnapshot(std::string name, int64_t created,
                                          std::function<uint64_t()> inode_limit) override;
  Status RenameSnapshot(uint64_t number, std::string name) override;
  Status BeginRemoval(uint64_t number) override;
  VersionRelease BeginRelease(uint64_t number) const override;
  Result<bool> ReleaseSome(VersionRelease& release, size_t most) override;
  Status EndRemoval(uint64_t number) override;
  Result<NumberedSnapshot> BeginRestore(uint64_t number, std::string kept, int64_t created,
                                        uint64_t inode_limit) override;
  Result<bool> RestoreSome(VersionRestore& restore, size_t most,
                           const std::function<void(std::string_view key)>& on_changed) override;
  Status EndRestore(uint64_t number) override;
  Status PublishHidden(const std::vector<HiddenRange>& ranges,
                       const std::function<Status()>& publish) override;

  Lineages AllLineages() const override;
  Result<LineageNumber> AddLineage(const LineageRecord& record) override;
  Status SetLineage(LineageNumber lineage, const std::optional<LineageRecord>& record) override;
  Status WriteHead(LineageNumber lineage, const std::vector<Mutation>& records,
                   const LineageRecord& record) override;
  Status EndHeadRestore(LineageNumber lineage, uint64_t restored) override;
  Result<NumberedSnapshot> AddReceived(SnapshotRecord record) override;

 private:
  // Publishes the snapshot with the records of a load.
  class PublishedLoad;

  using Time = CommitPace::Time;

  static Time SteadyClock() { return std::chrono::steady_clock::now().time_since_epoch(); }

  void CommitLoop() SILTFS_EXCLUDES(mutex_);
  bool CommitDue() const SILTFS_REQUIRES(mutex_);
  // When to try again to commit the closed group. If no group is closed: when to commit the open
  // group, which must be `used`, without a request.
  Time Deadline() const SILTFS_REQUIRES(mutex_);
  void WaitForWork() SILTFS_REQUIRES(mutex_);
  void CloseOpenGroup() SILTFS_REQUIRES(mutex_);
  void ApplyToOpen(std::vector<Mutation> mutations, const Counters& differences,
                   const QuotaDifferences& quotas) SILTFS_REQUIRES(mutex_);
  // Makes one attempt to commit the closed group. Releases mutex_ during the attempt, and holds it
  // again on return.
  void TryCommit() SILTFS_REQUIRES(mutex_);
  // Writes the group, what belongs to its commit, and the versions that snapshots need. Sets
  // `snapshots` to the state with the snapshots that this commit makes. The inodes of the commit
  // are below `inode_limit`.
  Status WriteGroup(NumberedGroup& closed, std::vector<Mutation> extra, const Counters& totals,
                    const std::vector<WantedSnapshot>& wanted, uint64_t inode_limit,
                    std::shared_ptr<const SnapshotState>& snapshots)
      SILTFS_REQUIRES(kv_write_mutex_) SILTFS_EXCLUDES(mutex_);
  // Writes outside of commits, and publishes the new snapshot, and `snapshots` unless it is null.
  Status WriteNow(const std::vector<Mutation>& mutations,
                  std::shared_ptr<const SnapshotState> snapshots = nullptr)
      SILTFS_REQUIRES(kv_write_mutex_) SILTFS_EXCLUDES(mutex_) {
    return WriteNow([&] { return kv_->Write(mutations); }, std::move(snapshots));
  }
  Status WriteNow(const std::function<Status()>& write,
                  std::shared_ptr<const SnapshotState> snapshots = nullptr)
      SILTFS_REQUIRES(kv_write_mutex_) SILTFS_EXCLUDES(mutex_);
  // Writes a change of the snapshots' records.
  Status EditSnapshots(
      const std::function<Status(SnapshotState& state, std::vector<Mutation>& mutations)>& edit)
      SILTFS_EXCLUDES(kv_write_mutex_, mutex_);
  std::shared_ptr<const SnapshotState> SnapshotsNow() const SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return snapshots_;
  }
  // Waits until the attempt to commit that is running now, if any, has ended.
  void AwaitAttempt() SILTFS_EXCLUDES(mutex_);
  // Whether a snapshot of this name is being made, or one is being renamed to it.
  bool IsWanted(std::string_view name) const SILTFS_REQUIRES(mutex_);
  // kUnsupported if no further snapshot can have a number.
  static Status CheckNumbersLeft(const SnapshotState& snapshots);
  // Returns when commit `number` is in the key-value store.
  Status WaitForCommit(uint64_t number) SILTFS_REQUIRES(mutex_);
  void Fail(const Status& cause) SILTFS_REQUIRES(mutex_);
  Status Writable() const SILTFS_REQUIRES(mutex_);
  bool Full(const NumberedGroup& group) const {
    return group.group->bytes() >= options_.group_bytes;
  }
  void EndCommitThread() SILTFS_EXCLUDES(mutex_);

  // Constant after construction.
  const MetadataOptions options_;
  const std::function<Time()> clock_;
  const std::unique_ptr<KvStore> kv_;

  // Held while a snapshot is made, and while hidden inodes become visible. Locked before the
  // others.
  Mutex making_mutex_ SILTFS_ACQUIRED_BEFORE(kv_write_mutex_);

  // Held from a write to the key-value store until the snapshot with this write is published, so
  // that snapshots are published in write order. Locked before mutex_; held during I/O.
  Mutex kv_write_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);

  // Never held during I/O.
  mutable Mutex mutex_;
  CondVar work_;      // the commit thread waits
  CondVar progress_;  // an attempt to commit succeeded or failed
  std::shared_ptr<const KvSnapshot> snapshot_ SILTFS_GUARDED_BY(mutex_);
  // Changes only while kv_write_mutex_ is held, too.
  std::shared_ptr<const SnapshotState> snapshots_ SILTFS_GUARDED_BY(mutex_);
  std::unique_ptr<NumberedGroup> open_ SILTFS_GUARDED_BY(mutex_);
  CommitPace pace_ SILTFS_GUARDED_BY(mutex_);
  // The group that is closed and not yet durable. Only the commit thread resets it.
  std::unique_ptr<NumberedGroup> closed_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::string> renaming_to_ SILTFS_GUARDED_BY(mutex_);
  // Whether an attempt to commit the closed group runs.
  bool trying_ SILTFS_GUARDED_BY(mutex_) = false;
  // Whether the closed group still accepts ApplyTo.
  bool takes_late_ SILTFS_GUARDED_BY(mutex_) = false;
  CommitParticipant* participant_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  DeferredChanges* late_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  // Whether to commit the closed group now, and not only at retry_at_.
  bool try_closed_ SILTFS_GUARDED_BY(mutex_) = false;
  Time retry_at_ SILTFS_GUARDED_BY(mutex_){};
  uint64_t requested_ SILTFS_GUARDED_BY(mutex_) = 0;  // the highest commit requested
  uint64_t published_ SILTFS_GUARDED_BY(mutex_);      // the last durable commit
  uint64_t completed_ SILTFS_GUARDED_BY(mutex_);      // the last commit whose CommitDone
                                                      // returned
  Counters committed_counters_ SILTFS_GUARDED_BY(mutex_);
  Counters counters_ SILTFS_GUARDED_BY(mutex_);
  uint64_t tries_ SILTFS_GUARDED_BY(mutex_) = 0;  // attempts begun
  // The value that tries_ had during the last failed attempt.
  uint64_t failed_try_ SILTFS_GUARDED_BY(mutex_) = 0;
  Status no_space_ SILTFS_GUARDED_BY(mutex_);  // the error of the last attempt without space
  Status failure_ SILTFS_GUARDED_BY(mutex_);
  bool stop_ SILTFS_GUARDED_BY(mutex_) = false;

  std::thread commit_thread_;
};

}  // namespace siltfs
