#include "fs/meta/metadata_store.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "fs/meta/commit_pace.h"
#include "fs/meta/commit_records.h"
#include "fs/meta/group.h"
#include "fs/meta/snapshot_state.h"
#include "fs/meta/view_source.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

namespace {

using Time = CommitPace::Time;

Time SteadyClock() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Longer commit intervals are reduced to this one, so that no deadline exceeds the range of Time.
constexpr std::chrono::milliseconds kLongestInterval = std::chrono::hours(24 * 365);

// The most versions of hidden inodes that one write keeps. Commits wait for the write.
constexpr size_t kVersionsPerWrite = 4096;

// A group and its state. Owned by the store; the map is shared with Views.
struct NumberedGroup {
  explicit NumberedGroup(uint64_t its_number) : number(its_number) {}

  const uint64_t number;
  const std::shared_ptr<Group> group = std::make_shared<Group>();
  Counters differences{};
  std::vector<WantedSnapshot> wanted;
  bool used = false;  // an Apply or Join has added to it
  // Valid if `used`.
  Time first_change{};
  Time last_change{};
};

class GroupedStore final : public MetadataStore, public SnapshotPort {
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
  Result<uint64_t> Apply(std::vector<Mutation> mutations, const Counters& differences) override;
  Result<uint64_t> Join() override { return Apply({}, {}); }
  Status ApplyTo(uint64_t number, std::vector<Mutation> mutations,
                 const Counters& differences) override;
  void SetDeferredChanges(DeferredChanges* late) override;
  Counters counters() const override;
  Status Commit(uint64_t number) override;
  Status CommitAll() override;
  Status WriteThrough(const std::vector<Mutation>& mutations) override;
  Result<std::unique_ptr<KvLoad>> NewLoad() override;
  uint64_t last_commit() const override;
  Status failure() const override;
  uint64_t DiskBytes() const override { return kv_->DiskBytes(); }
  void EndCommits() override { EndCommitThread(); }
  Status Close() override;

  SnapshotPort* snapshots() override { return this; }
  std::vector<NumberedSnapshot> Snapshots() const override;
  Result<NumberedSnapshot> CreateSnapshot(std::string name, int64_t created,
                                          std::function<uint64_t()> inode_limit) override;
  Status RenameSnapshot(uint64_t number, std::string name) override;
  Status BeginRemoval(uint64_t number) override;
  VersionRelease BeginRelease(uint64_t number) const override;
  Result<bool> ReleaseSome(VersionRelease& release, size_t most) override;
  Status EndRemoval(uint64_t number) override;
  Status BeginRestore(uint64_t number) override;
  Result<bool> RestoreSome(VersionRestore& restore, size_t most) override;
  Status EndRestore(uint64_t number) override;
  Status PublishHidden(const std::vector<HiddenRange>& ranges,
                       const std::function<Status()>& publish) override;

 private:
  // Publishes the snapshot with the records of a load.
  class PublishedLoad;

  void CommitLoop() SILTFS_EXCLUDES(mutex_);
  bool CommitDue() const SILTFS_REQUIRES(mutex_);
  // When to try again to commit the closed group. If no group is closed: when to commit the open
  // group, which must be `used`, without a request.
  Time Deadline() const SILTFS_REQUIRES(mutex_);
  void WaitForWork() SILTFS_REQUIRES(mutex_);
  void CloseOpenGroup() SILTFS_REQUIRES(mutex_);
  void ApplyToOpen(std::vector<Mutation> mutations, const Counters& differences)
      SILTFS_REQUIRES(mutex_);
  // Makes one attempt to commit the closed group. Releases mutex_ during the attempt, and holds it
  // again on return.
  void TryCommit() SILTFS_REQUIRES(mutex_);
  // Writes the group, what belongs to its commit, and the versions that snapshots need. Sets
  // `snapshots` to the state with the snapshots that this commit makes. The inodes of the commit
  // are below `inode_limit`.
  Status WriteGroup(const NumberedGroup& closed, std::vector<Mutation> extra,
                    const Counters& totals, const std::vector<WantedSnapshot>& wanted,
                    uint64_t inode_limit, std::shared_ptr<const SnapshotState>& snapshots)
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

void GroupedStore::SetParticipant(CommitParticipant* participant) {
  MutexLock lock(mutex_);
  participant_ = participant;
}

View GroupedStore::Pin() const {
  MutexLock lock(mutex_);
  return View(std::make_shared<const View::Source>(open_->group, closed_ ? closed_->group : nullptr,
                                                   snapshot_));
}

std::shared_ptr<const KvSnapshot> GroupedStore::CommittedSnapshot() const {
  MutexLock lock(mutex_);
  return snapshot_;
}

Result<std::optional<std::string>> GroupedStore::Get(std::string_view key) const {
  return Pin().Get(key);
}

Counters GroupedStore::counters() const {
  MutexLock lock(mutex_);
  return counters_;
}

uint64_t GroupedStore::last_commit() const {
  MutexLock lock(mutex_);
  return published_;
}

Status GroupedStore::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

Status GroupedStore::Writable() const {
  if (options_.read_only) return Status(StatusCode::kReadOnly, "the store was opened read-only");
  if (!failure_.ok()) {
    return Status(StatusCode::kReadOnly,
                  "the store turned read-only after a failure: " + failure_.ToString());
  }
  return Status::Ok();
}

Result<uint64_t> GroupedStore::Apply(std::vector<Mutation> mutations, const Counters& differences) {
  SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(mutations));
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  const uint64_t number = open_->number;
  ApplyToOpen(std::move(mutations), differences);
  return number;
}

Status GroupedStore::ApplyTo(uint64_t number, std::vector<Mutation> mutations,
                             const Counters& differences) {
  SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(mutations));
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  if (number == open_->number) {
    ApplyToOpen(std::move(mutations), differences);
    return Status::Ok();
  }
  if (!closed_ || closed_->number != number || !takes_late_) {
    return Status(StatusCode::kInvalidArgument,
                  "commit " + std::to_string(number) + " takes no more changes");
  }
  closed_->group->Add(std::move(mutations));
  AddTo(closed_->differences, differences);
  AddTo(counters_, differences);
  return Status::Ok();
}

void GroupedStore::SetDeferredChanges(DeferredChanges* late) {
  MutexLock lock(mutex_);
  late_ = late;
}

void GroupedStore::ApplyToOpen(std::vector<Mutation> mutations, const Counters& differences) {
  const bool was_full = Full(*open_);
  open_->group->Add(std::move(mutations));
  AddTo(open_->differences, differences);
  AddTo(counters_, differences);
  const bool first = !std::exchange(open_->used, true);
  // The first change of a group wakes the commit thread. A later change wakes the thread only if it
  // fills the group. When the deadline that follows from the first change is reached, the commit
  // thread itself looks whether later changes have moved the deadline.
  open_->last_change = clock_();
  if (first) open_->first_change = open_->last_change;
  if (Full(*open_) && !closed_) {
    CloseOpenGroup();
  } else if (first || (!was_full && Full(*open_))) {
    work_.NotifyOne();
  }
}

Status GroupedStore::WaitForRoom() {
  MutexLock lock(mutex_);
  const uint64_t begun_before = tries_;
  while (true) {
    SILTFS_RETURN_IF_ERROR(Writable());
    if (!Full(*open_)) return Status::Ok();
    if (failed_try_ > begun_before) return no_space_;
    if (!closed_) {
      CloseOpenGroup();
      return Status::Ok();
    }
    try_closed_ = true;
    work_.NotifyOne();
    progress_.Wait(mutex_);
  }
}

Status GroupedStore::Commit(uint64_t number) {
  MutexLock lock(mutex_);
  if (number > open_->number || (number == open_->number && !open_->used)) {
    return Status(StatusCode::kInvalidArgument,
                  "nothing was applied for commit " + std::to_string(number));
  }
  return WaitForCommit(number);
}

Status GroupedStore::CommitAll() {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return Writable();
  return WaitForCommit(open_->used ? open_->number : open_->number - 1);
}

Status GroupedStore::WaitForCommit(uint64_t number) {
  if (completed_ >= number) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Writable());
  const uint64_t begun_before = tries_;
  while (completed_ < number) {
    if (!failure_.ok()) return failure_;
    if (failed_try_ > begun_before) return no_space_;
    // An attempt that was already running may have failed on a disk that has room now: request
    // another attempt.
    requested_ = std::max(requested_, number);
    if (closed_) try_closed_ = true;
    work_.NotifyOne();
    progress_.Wait(mutex_);
  }
  return Status::Ok();
}

Status GroupedStore::WriteThrough(const std::vector<Mutation>& mutations) {
  SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(mutations));
  MutexLock write_lock(kv_write_mutex_);
  return WriteNow(mutations);
}

class GroupedStore::PublishedLoad final : public KvLoad {
 public:
  PublishedLoad(GroupedStore& store, std::unique_ptr<KvLoad> load)
      : store_(store), load_(std::move(load)) {}
  // The engine may have written records before Load. Shows them to readers.
  ~PublishedLoad() override {
    load_.reset();
    const MutexLock write_lock(store_.kv_write_mutex_);
    std::shared_ptr<const KvSnapshot> snapshot = store_.kv_->Snapshot();
    const MutexLock lock(store_.mutex_);
    store_.snapshot_.swap(snapshot);
  }
  PublishedLoad(const PublishedLoad&) = delete;
  PublishedLoad& operator=(const PublishedLoad&) = delete;

  Status Add(const KvRun& run) override {
    SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(run));
    return load_->Add(run);
  }
  Status Load() override {
    MutexLock write_lock(store_.kv_write_mutex_);
    return store_.WriteNow([this] { return load_->Load(); });
  }

 private:
  GroupedStore& store_;
  std::unique_ptr<KvLoad> load_;
};

Result<std::unique_ptr<KvLoad>> GroupedStore::NewLoad() {
  {
    MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(Writable());
  }
  SILTFS_ASSIGN_OR_RETURN(auto load, kv_->NewLoad());
  return std::unique_ptr<KvLoad>(std::make_unique<PublishedLoad>(*this, std::move(load)));
}

Status GroupedStore::WriteNow(const std::function<Status()>& write,
                              std::shared_ptr<const SnapshotState> snapshots) {
  {
    MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(Writable());
  }
  const Status written = write();
  std::shared_ptr<const KvSnapshot> snapshot = written.ok() ? kv_->Snapshot() : nullptr;
  MutexLock lock(mutex_);
  if (written.ok()) {
    snapshot_.swap(snapshot);
    if (snapshots) snapshots_.swap(snapshots);
  } else if (!written.Is(StatusCode::kNoSpace)) {
    Fail(written);
    progress_.NotifyAll();
  }
  return written;
}

Status GroupedStore::Close() {
  if (!options_.read_only) {
    const Status committed = CommitAll();
    if (committed.Is(StatusCode::kNoSpace)) return committed;
    EndCommitThread();
    if (!committed.ok()) return committed;
  }
  {
    MutexLock lock(mutex_);
    snapshot_.reset();
  }
  return kv_->CloseCleanly();
}

void GroupedStore::EndCommitThread() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    work_.NotifyOne();
  }
  if (commit_thread_.joinable()) commit_thread_.join();
}

Time GroupedStore::Deadline() const {
  return closed_ ? retry_at_ : pace_.Due(open_->first_change, open_->last_change);
}

bool GroupedStore::CommitDue() const {
  if (!failure_.ok()) return false;
  if (closed_) return try_closed_ || clock_() >= Deadline();
  return open_->used && (requested_ >= open_->number || Full(*open_) || clock_() >= Deadline());
}

void GroupedStore::WaitForWork() {
  const bool idle = !failure_.ok() || (!closed_ && !open_->used);
  if (idle) {
    work_.Wait(mutex_);
  } else {
    work_.WaitFor(mutex_, std::max(Deadline() - clock_(), Time::zero()));
  }
}

void GroupedStore::CommitLoop() {
  MutexLock lock(mutex_);
  while (!stop_) {
    if (!CommitDue()) {
      WaitForWork();
      continue;
    }
    const Time began = clock_();
    const bool early = !closed_ && requested_ < open_->number && !Full(*open_) &&
                       began < open_->first_change + options_.commit_interval;
    if (!closed_) CloseOpenGroup();
    TryCommit();
    pace_.Committed(began, clock_(), early);
  }
}

void GroupedStore::CloseOpenGroup() {
  closed_ = std::exchange(open_, std::make_unique<NumberedGroup>(open_->number + 1));
  takes_late_ = true;
  try_closed_ = true;
  work_.NotifyOne();
}

void GroupedStore::Fail(const Status& cause) {
  if (!failure_.ok()) return;
  failure_ = cause;
  failure_.IgnoreError("returned to later calls");
}

Status GroupedStore::WriteGroup(const NumberedGroup& closed, std::vector<Mutation> extra,
                                const Counters& totals, const std::vector<WantedSnapshot>& wanted,
                                uint64_t inode_limit,
                                std::shared_ptr<const SnapshotState>& snapshots) {
  snapshots = SnapshotsNow();
  if (snapshots->keeper().HasSnapshots()) {
    SILTFS_RETURN_IF_ERROR(
        snapshots->keeper().Keep(*CommittedSnapshot(), closed.group->Keys(), extra));
  }
  if (!wanted.empty()) {
    auto state = std::make_shared<SnapshotState>(*snapshots);
    for (const WantedSnapshot& snapshot : wanted)
      state->Add(snapshot, closed.number, inode_limit, totals, extra);
    snapshots = std::move(state);
  }
  return kv_->WriteFrom([&](MutationSink& sink) {
    closed.group->WriteTo(sink);
    PassTo(sink, extra);
    sink.Put(kCountersKey, EncodeCounters(totals));
    sink.Put(kCommitNumberKey, EncodeCommitNumber(closed.number));
  });
}

void GroupedStore::TryCommit() {
  NumberedGroup& closed = *closed_;  // only this thread resets it
  const uint64_t number = closed.number;
  DeferredChanges* const late = late_;
  CommitParticipant* const participant = participant_;
  const uint64_t this_try = ++tries_;
  const std::vector<WantedSnapshot> wanted = closed.wanted;
  trying_ = true;
  try_closed_ = false;
  mutex_.Unlock();
  Status status = late != nullptr ? late->FlushDeferred(number) : Status::Ok();
  mutex_.Lock();
  takes_late_ = false;  // so the group is immutable from here on
  Counters totals = committed_counters_;
  AddTo(totals, closed.differences);
  mutex_.Unlock();

  const uint64_t inode_limit = wanted.empty() ? 0 : wanted.front().inode_limit();
  std::vector<Mutation> extra;
  if (status.ok() && participant != nullptr) status = participant->PrepareCommit(number, extra);
  std::unique_ptr<NumberedGroup> done;
  if (status.ok()) {
    MutexLock write_lock(kv_write_mutex_);
    // If a WriteThrough has failed since this attempt began, nothing more may be written.
    mutex_.Lock();
    status = failure_;
    mutex_.Unlock();
    std::shared_ptr<const SnapshotState> snapshots;
    if (status.ok()) {
      status = WriteGroup(closed, std::move(extra), totals, wanted, inode_limit, snapshots);
    }
    if (status.ok()) {
      std::shared_ptr<const KvSnapshot> snapshot = kv_->Snapshot();
      MutexLock lock(mutex_);
      snapshot_.swap(snapshot);
      snapshots_.swap(snapshots);
      done = std::move(closed_);
      committed_counters_ = totals;
      published_ = number;
    }
  }
  if (status.ok() && participant != nullptr) participant->CommitDone(number);
  done.reset();  // slow, so outside the mutex

  mutex_.Lock();
  trying_ = false;
  if (status.ok()) {
    completed_ = number;
  } else {
    failed_try_ = this_try;
    requested_ = published_;  // earlier waiters get the error; a later request starts the next
                              // attempt
    try_closed_ = false;
    retry_at_ = clock_() + options_.commit_interval;
    if (status.Is(StatusCode::kNoSpace)) {
      no_space_ = status;
      no_space_.IgnoreError("waiters get it; without waiters the attempt is repeated");
    } else {
      Fail(status);
    }
  }
  progress_.NotifyAll();
}

// --- Snapshots

std::vector<NumberedSnapshot> GroupedStore::Snapshots() const { return SnapshotsNow()->all(); }

bool GroupedStore::IsWanted(std::string_view name) const {
  const auto wants = [name](const NumberedGroup* group) {
    return group != nullptr && std::ranges::any_of(group->wanted, [name](const auto& wanted) {
             return wanted.name == name;
           });
  };
  return wants(open_.get()) || wants(closed_.get()) ||
         std::ranges::find(renaming_to_, name) != renaming_to_.end();
}

Result<NumberedSnapshot> GroupedStore::CreateSnapshot(std::string name, int64_t created,
                                                      std::function<uint64_t()> inode_limit) {
  const MutexLock making(making_mutex_);
  SILTFS_RETURN_IF_ERROR(WaitForRoom());
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  if (snapshots_->next() >= kSnapshotNumberLimit) {
    return Status(StatusCode::kUnsupported,
                  "the store has used all numbers of snapshots, so it cannot have new ones");
  }
  if (snapshots_->HasName(name) || IsWanted(name))
    return Status(StatusCode::kAlreadyExists, "another snapshot has this name");
  const uint64_t number = open_->number;
  open_->wanted.push_back({name, created, std::move(inode_limit)});
  ApplyToOpen({}, {});
  Status made = WaitForCommit(number);
  // The disk is full, and the group is kept for later. Another attempt may already run.
  while (made.Is(StatusCode::kNoSpace) && completed_ < number && failure_.ok()) {
    NumberedGroup* const group = open_->number == number ? open_.get() : closed_.get();
    if (group == open_.get() || !trying_) {
      std::erase_if(group->wanted, [&](const WantedSnapshot& w) { return w.name == name; });
      return made;
    }
    progress_.Wait(mutex_);
  }
  if (completed_ < number) return made;
  made.IgnoreError("a later attempt has made the snapshot");
  for (const NumberedSnapshot& snapshot : snapshots_->all()) {
    if (snapshot.record.name == name && snapshot.record.commit == number) return snapshot;
  }
  return Status(StatusCode::kNotFound, "the snapshot was removed at once");
}

Status GroupedStore::EditSnapshots(
    const std::function<Status(SnapshotState&, std::vector<Mutation>&)>& edit) {
  MutexLock write_lock(kv_write_mutex_);
  auto state = std::make_shared<SnapshotState>(*SnapshotsNow());
  std::vector<Mutation> mutations;
  SILTFS_RETURN_IF_ERROR(edit(*state, mutations));
  return mutations.empty() ? Status::Ok() : WriteNow(mutations, std::move(state));
}

Status GroupedStore::RenameSnapshot(uint64_t number, std::string name) {
  {
    MutexLock lock(mutex_);
    if (IsWanted(name)) return {StatusCode::kAlreadyExists, "another snapshot has this name"};
    renaming_to_.push_back(name);
  }
  Status renamed = EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.Rename(number, name, mutations);
  });
  MutexLock lock(mutex_);
  std::erase(renaming_to_, name);
  return renamed;
}

Status GroupedStore::BeginRemoval(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.BeginRemoval(number, mutations);
  });
}

VersionRelease GroupedStore::BeginRelease(uint64_t number) const {
  const auto state = SnapshotsNow();
  return VersionRelease(number, state->keeper().snapshots(), state->next() - 1);
}

// kv_write_mutex_ is not fair: without this, a thread that takes it again and again would keep the
// commit thread waiting.
void GroupedStore::AwaitAttempt() {
  MutexLock lock(mutex_);
  const uint64_t running = tries_;
  while (trying_ && tries_ == running && !stop_) progress_.Wait(mutex_);
}

Result<bool> GroupedStore::ReleaseSome(VersionRelease& release, size_t most) {
  AwaitAttempt();
  MutexLock write_lock(kv_write_mutex_);
  std::vector<Mutation> mutations;
  SILTFS_ASSIGN_OR_RETURN(const bool more, release.Next(*CommittedSnapshot(), most, mutations));
  if (!mutations.empty()) SILTFS_RETURN_IF_ERROR(WriteNow(mutations));
  return more;
}

Status GroupedStore::EndRemoval(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.EndRemoval(number, mutations);
  });
}

Status GroupedStore::BeginRestore(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.BeginRestore(number, mutations);
  });
}

Result<bool> GroupedStore::RestoreSome(VersionRestore& restore, size_t most) {
  AwaitAttempt();
  MutexLock write_lock(kv_write_mutex_);
  std::vector<Mutation> mutations;
  const auto present = CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const bool more, restore.Next(*present, most, mutations));
  if (mutations.empty()) return more;
  std::vector<std::string> keys;
  for (const Mutation& mutation : mutations) keys.push_back(mutation.key);
  const std::vector<std::string_view> changed(keys.begin(), keys.end());
  SILTFS_RETURN_IF_ERROR(SnapshotsNow()->keeper().Keep(*present, changed, mutations));
  SILTFS_RETURN_IF_ERROR(WriteNow(mutations));
  return more;
}

Status GroupedStore::EndRestore(uint64_t number) {
  return EditSnapshots([&](SnapshotState& state, std::vector<Mutation>& mutations) {
    return state.EndRestore(number, mutations);
  });
}

Status GroupedStore::PublishHidden(const std::vector<HiddenRange>& ranges,
                                   const std::function<Status()>& publish) {
  const MutexLock making(making_mutex_);
  for (const HiddenRange& range : ranges) {
    std::string from;
    for (bool more = true; more;) {
      MutexLock write_lock(kv_write_mutex_);
      std::vector<Mutation> kept;
      SILTFS_ASSIGN_OR_RETURN(
          more, SnapshotsNow()->keeper().KeepHidden(*CommittedSnapshot(), range, kVersionsPerWrite,
                                                    from, kept));
      if (!kept.empty()) SILTFS_RETURN_IF_ERROR(WriteNow(kept));
    }
  }
  return publish();
}

}  // namespace

Status MetadataStore::CommitNow() {
  SILTFS_RETURN_IF_ERROR(WaitForRoom());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t number, Join());
  return Commit(number);
}

Result<std::unique_ptr<MetadataStore>> MetadataStore::Open(std::unique_ptr<KvStore> kv,
                                                           MetadataOptions options) {
  if (options.group_bytes == 0 || options.commit_interval.count() < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the size of a group must not be 0, nor the commit interval negative");
  }
  options.commit_interval = std::min(options.commit_interval, kLongestInterval);
  SILTFS_ASSIGN_OR_RETURN(const uint64_t last_commit, LoadCommitNumber(*kv));
  SILTFS_ASSIGN_OR_RETURN(const Counters counters, LoadCounters(*kv, last_commit));
  SILTFS_ASSIGN_OR_RETURN(SnapshotState snapshots, SnapshotState::Read(*kv->Snapshot()));
  return std::unique_ptr<MetadataStore>(std::make_unique<GroupedStore>(
      std::move(kv), options, last_commit, counters, std::move(snapshots)));
}

}  // namespace siltfs
