#include "fs/meta/grouped_store.h"

#include <algorithm>
#include <utility>

#include "fs/meta/commit_records.h"
#include "fs/meta/view_source.h"

namespace siltfs {

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

Result<uint64_t> GroupedStore::Apply(std::vector<Mutation> mutations, const Counters& differences,
                                     const QuotaDifferences& quotas) {
  SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(mutations));
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  const uint64_t number = open_->number;
  ApplyToOpen(std::move(mutations), differences, quotas);
  return number;
}

Status GroupedStore::ApplyTo(uint64_t number, std::vector<Mutation> mutations,
                             const Counters& differences, const QuotaDifferences& quotas) {
  SILTFS_RETURN_IF_ERROR(RefuseOwnKeys(mutations));
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(Writable());
  if (number == open_->number) {
    ApplyToOpen(std::move(mutations), differences, quotas);
    return Status::Ok();
  }
  if (!closed_ || closed_->number != number || !takes_late_) {
    return Status(StatusCode::kInvalidArgument,
                  "commit " + std::to_string(number) + " takes no more changes");
  }
  closed_->group->Add(std::move(mutations));
  AddTo(closed_->differences, differences);
  closed_->quotas.Add(quotas);
  AddTo(counters_, differences);
  return Status::Ok();
}

void GroupedStore::SetDeferredChanges(DeferredChanges* late) {
  MutexLock lock(mutex_);
  late_ = late;
}

void GroupedStore::ApplyToOpen(std::vector<Mutation> mutations, const Counters& differences,
                               const QuotaDifferences& quotas) {
  const bool was_full = Full(*open_);
  open_->group->Add(std::move(mutations));
  AddTo(open_->differences, differences);
  open_->quotas.Add(quotas);
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
  {
    MutexLock lock(mutex_);
    if (number > open_->number || (number == open_->number && !open_->used)) {
      return Status(StatusCode::kInvalidArgument,
                    "nothing was applied for commit " + std::to_string(number));
    }
    SILTFS_RETURN_IF_ERROR(WaitForCommit(number));
  }
  return AwaitShipped();
}

Status GroupedStore::CommitAll() {
  SILTFS_RETURN_IF_ERROR(CommitAllLocally());
  return AwaitShipped();
}

Status GroupedStore::AwaitShipped() {
  const Status shipped = kv_->AwaitShipped();
  // Otherwise the commits are on the local disk, and are still on their way.
  if (shipped.Is(StatusCode::kReadOnly)) {
    MutexLock lock(mutex_);
    Fail(shipped);
    progress_.NotifyAll();
  }
  return shipped;
}

Status GroupedStore::CommitAllLocally() {
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
    const Status committed = CommitAllLocally();
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

GroupedStore::Time GroupedStore::Deadline() const {
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

Status GroupedStore::WriteGroup(NumberedGroup& closed, std::vector<Mutation> extra,
                                const Counters& totals, const std::vector<WantedSnapshot>& wanted,
                                uint64_t inode_limit,
                                std::shared_ptr<const SnapshotState>& snapshots) {
  snapshots = SnapshotsNow();
  SILTFS_RETURN_IF_ERROR(closed.quotas.WriteTo(*closed.group, *CommittedSnapshot()));
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

}  // namespace siltfs
