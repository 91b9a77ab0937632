#include "store/bucket/object_remover.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace siltfs {
namespace {

constexpr std::chrono::milliseconds kFirstPause(200);
constexpr std::chrono::seconds kLongestPause(60);
constexpr std::chrono::seconds kGatePoll(2);
constexpr std::chrono::milliseconds kDeletionPoll(20);

}  // namespace

ObjectRemover::ObjectRemover(Env& env, ObjectStore& objects, StopSignal& stop, Options options,
                             std::function<bool(const ContentId&)> in_use)
    : env_(env),
      objects_(objects),
      stop_(stop),
      options_(std::move(options)),
      in_use_(std::move(in_use)) {}

ObjectRemover::~ObjectRemover() { Stop(); }

void ObjectRemover::StartThread() {
  due_ = true;
  if (options_.thread && !stopping_ && threads_.empty())
    threads_.emplace_back([this] { ThreadMain(); });
  changed_.NotifyAll();
}

void ObjectRemover::Add(const ContentId& id, uint64_t position) {
  MutexLock lock(mutex_);
  dead_.emplace(id, position);
  StartThread();
}

void ObjectRemover::AddTombstone(const Tombstone& tombstone) {
  MutexLock lock(mutex_);
  tombstones_.insert(tombstone);
  StartThread();
}

void ObjectRemover::Wake() {
  MutexLock lock(mutex_);
  due_ = true;
  changed_.NotifyAll();
}

std::vector<ContentId> ObjectRemover::Deletable() const {
  std::vector<ContentId> deletable;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, position] : dead_) {
      if (options_.gate == nullptr || options_.gate->MayDelete(position)) deletable.push_back(id);
    }
  }
  std::erase_if(deletable, in_use_);
  return deletable;
}

std::vector<ContentId> ObjectRemover::Due() {
  {
    MutexLock lock(mutex_);
    due_ = false;
  }
  std::vector<ContentId> due;
  std::vector<ContentId> failed_before;
  for (const ContentId& id : Deletable())
    (failed_.contains(id) ? failed_before : due).push_back(id);
  due.insert(due.end(), failed_before.begin(), failed_before.end());
  return due;
}

Status ObjectRemover::RemoveTombstones() {
  std::vector<Tombstone> done;
  {
    MutexLock lock(mutex_);
    for (const Tombstone& tombstone : tombstones_) {
      const auto left = dead_.lower_bound({tombstone.id.segment, 0});
      if (left == dead_.end() || left->first > tombstone.id) done.push_back(tombstone);
    }
  }
  if (done.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(FilesDirectory(options_.directory)));
  for (const Tombstone& tombstone : done) {
    const Status removed = env_.RemoveFile(TombstonePath(options_.directory, tombstone));
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  }
  MutexLock lock(mutex_);
  for (const Tombstone& tombstone : done) tombstones_.erase(tombstone);
  return Status::Ok();
}

Status ObjectRemover::RunOnce() {
  MutexLock run(run_mutex_);
  for (const ContentId& id : Due()) {
    if (stop_.stopped()) return Status(StatusCode::kInterrupted, "the store is being closed");
    if (Status removed = objects_.Remove(SegmentObjectKey(id)); !removed.ok()) {
      failed_.insert(id);
      return removed;
    }
    failed_.erase(id);
    MutexLock lock(mutex_);
    dead_.erase(id);
    ++removed_;
  }
  return RemoveTombstones();
}

void ObjectRemover::DeleteDue(std::chrono::nanoseconds timeout) {
  if (!options_.thread) return RunOnce().IgnoreError("the next start deletes what is left");
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!Deletable().empty()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0 || stop_.stopped()) return;
    MutexLock lock(mutex_);
    due_ = true;
    changed_.NotifyAll();
    changed_.WaitFor(mutex_, std::min<std::chrono::nanoseconds>(left, kDeletionPoll));
  }
}

void ObjectRemover::ThreadMain() {
  std::optional<RetryPauses> backoff;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!due_ && !stopping_) {
        if (dead_.empty() && tombstones_.empty()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitFor(mutex_, kGatePoll);
          due_ = true;
        }
      }
      if (stopping_) return;
    }
    const Status done = RunOnce();
    if (done.ok()) {
      backoff.reset();
      continue;
    }
    if (!backoff) backoff.emplace(kFirstPause, kLongestPause, 1);
    if (!stop_.Pause(backoff->Next())) return;
    Wake();
  }
}

uint64_t ObjectRemover::waiting() const {
  MutexLock lock(mutex_);
  return dead_.size();
}

uint64_t ObjectRemover::removed() const {
  MutexLock lock(mutex_);
  return removed_;
}

void ObjectRemover::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace siltfs
