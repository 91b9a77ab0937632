#include "store/bucket/uploader.h"

#include <algorithm>
#include <utility>

#include "store/bucket/bucket_names.h"

namespace siltfs {
namespace {

constexpr std::chrono::milliseconds kFirstPause(100);
constexpr std::chrono::seconds kLongestPause(30);
constexpr std::chrono::milliseconds kGatePoll(500);

// Doubles with each failure. A part of it depends on the content, so that contents that have failed
// together are not repeated together.
std::chrono::nanoseconds PauseAfter(uint32_t failures, uint64_t number) {
  const std::chrono::nanoseconds pause = std::min<std::chrono::nanoseconds>(
      kFirstPause * (int64_t{1} << std::min(failures, 16u)), kLongestPause);
  return pause - pause * static_cast<int64_t>(number % 8) / 16;
}

}  // namespace

Uploader::Uploader(ObjectStore& objects, LocalCache& cache, BlockFetcher& fetcher, StopSignal& stop,
                   Options options, std::function<void(const ContentId&)> ended)
    : objects_(objects),
      cache_(cache),
      fetcher_(fetcher),
      stop_(stop),
      options_(options),
      ended_(std::move(ended)) {}

Uploader::~Uploader() { Stop(); }

void Uploader::Add(const SegmentContent& content, bool may_exist,
                   std::optional<uint64_t> position) {
  MutexLock lock(mutex_);
  if (jobs_.contains(content.id)) return;
  const uint64_t number = next_number_++;
  jobs_[content.id] = {.content = content,
                       .number = number,
                       .position = position,
                       .since = std::chrono::steady_clock::now(),
                       .may_exist = may_exist};
  order_[number] = content.id;
  ++status_.waiting;
  status_.waiting_bytes += content.size;
  while (!stopping_ && threads_.size() < options_.threads)
    threads_.emplace_back([this] { ThreadMain(); });
  changed_.NotifyAll();
}

Uploader::Sent Uploader::Cancel(const ContentId& id, bool wait) {
  MutexLock lock(mutex_);
  auto found = jobs_.find(id);
  while (wait && found != jobs_.end() && found->second.running) {
    changed_.Wait(mutex_);
    found = jobs_.find(id);
  }
  if (found == jobs_.end()) return Sent::kYes;
  Job& job = found->second;
  if (job.running) {
    job.cancelled = true;
    return Sent::kMaybe;
  }
  const Sent sent = job.may_exist ? Sent::kMaybe : Sent::kNever;
  --status_.waiting;
  status_.waiting_bytes -= job.content.size;
  order_.erase(job.number);
  jobs_.erase(found);
  changed_.NotifyAll();
  return sent;
}

bool Uploader::Holds(const ContentId& id) const {
  MutexLock lock(mutex_);
  return jobs_.contains(id);
}

bool Uploader::HoldsSegment(SegmentId id) const {
  MutexLock lock(mutex_);
  const auto at = jobs_.lower_bound({id, 0});
  return at != jobs_.end() && at->first.segment == id;
}

// A content whose upload has failed waits for its next attempt, and does not delay the others.
std::optional<Uploader::Job> Uploader::Take(Clock::time_point now) {
  for (const auto& [number, id] : order_) {
    Job& job = jobs_.at(id);
    if (job.running || job.due > now) continue;
    if (job.position && options_.gate != nullptr && !options_.gate->MayReplace(*job.position))
      continue;
    job.running = true;
    ++status_.uploading;
    return job;
  }
  return std::nullopt;
}

// --- One attempt.

Status Uploader::OtherContent(const std::string& key) {
  return Status(StatusCode::kAlreadyExists,
                "the bucket has another content under this key, perhaps of another writer")
      .At(key);
}

Result<bool> Uploader::IsThere(const BlockChecksums& checksums) {
  const auto there = fetcher_.ReadChecksums(checksums.content());
  if (there.ok()) {
    if (*there == checksums) return true;
    return OtherContent(SegmentObjectKey(checksums.content().id));
  }
  if (there.status().Is(StatusCode::kNotFound)) return false;
  return there.status();
}

// An object under this key that is not intact can only be a damaged copy of this content, but only
// if it has the size of one: the trailer of another content was looked for at the wrong place.
Result<PutCondition> Uploader::ReplaceDamaged(const SegmentContent& content,
                                              const std::string& key) {
  SILTFS_ASSIGN_OR_RETURN(const ObjectInfo info, objects_.Stat(key));
  if (info.size == content.size + TrailerBytes(content.size))
    return PutCondition::IfVersion(info.version);
  return OtherContent(key);
}

Status Uploader::Upload(const Job& job) {
  const SegmentContent& content = job.content;
  SILTFS_ASSIGN_OR_RETURN(const auto file, cache_.OpenWaiting(content.id));
  SILTFS_ASSIGN_OR_RETURN(BlockChecksums checksums, BlockChecksums::Compute(content, *file));
  std::string trailer = checksums.EncodeTrailer();
  const std::string key = SegmentObjectKey(content.id);
  PutCondition condition = PutCondition::IfAbsent();
  bool is_there = false;
  if (job.may_exist) {
    const auto found = IsThere(checksums);
    if (found.status().Is(StatusCode::kCorruption)) {
      SILTFS_ASSIGN_OR_RETURN(condition, ReplaceDamaged(content, key));
    } else {
      if (!found.ok()) return found.status();
      is_there = *found;
    }
  }
  if (!is_there) {
    const auto put = objects_.PutFile(key, ObjectImage(content, *file, trailer), condition);
    if (put.status().Is(StatusCode::kAlreadyExists)) {
      SILTFS_ASSIGN_OR_RETURN(is_there, IsThere(checksums));
      if (!is_there) return put.status();
    } else if (!put.ok()) {
      return put.status();
    }
  }
  SILTFS_RETURN_IF_ERROR(cache_.MarkUploaded(content.id, trailer));
  fetcher_.Remember(std::move(checksums));
  return Status::Ok();
}

bool Uploader::Run(const Job& job) {
  const Status uploaded = Upload(job);
  bool ended = false;
  {
    MutexLock lock(mutex_);
    Job& kept = jobs_.at(job.content.id);
    kept.running = false;
    kept.may_exist = true;
    --status_.uploading;
    if (uploaded.ok()) {
      ++status_.uploaded;
      status_.uploaded_bytes += job.content.size;
      status_.last_error.clear();
    } else if (!kept.cancelled) {
      kept.due = Clock::now() + PauseAfter(++kept.failures, kept.number);
      ++status_.failures;
      status_.last_error = uploaded.ToString();
    }
    ended = uploaded.ok() || kept.cancelled;
    if (ended) {
      --status_.waiting;
      status_.waiting_bytes -= job.content.size;
      order_.erase(kept.number);
      jobs_.erase(job.content.id);
    }
    changed_.NotifyAll();
  }
  if (ended) ended_(job.content.id);
  return ended;
}

bool Uploader::RunOne() {
  std::optional<Job> job;
  {
    MutexLock lock(mutex_);
    job = Take(Clock::time_point::max());
  }
  return job && Run(*job);
}

void Uploader::ThreadMain() {
  for (;;) {
    std::optional<Job> job;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !(job = Take(Clock::now()))) {
        // Contents that wait for the gate or for their next attempt: look again, even if no thread
        // calls Wake.
        status_.waiting > status_.uploading ? changed_.WaitFor(mutex_, kGatePoll)
                                            : changed_.Wait(mutex_);
      }
      if (!job) return;
    }
    Run(*job);
    if (stop_.stopped()) return;
  }
}

Status Uploader::WaitForUploads(std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  const uint64_t number = next_number_;
  while (!order_.empty() && order_.begin()->first < number) {
    const auto left = end - std::chrono::steady_clock::now();
    if (stopping_ || left.count() <= 0) {
      return Status(StatusCode::kIoError,
                    "the bucket does not have all segments yet" +
                        (status_.last_error.empty() ? "" : "; last error: " + status_.last_error));
    }
    changed_.WaitFor(mutex_, left);
  }
  return Status::Ok();
}

void Uploader::Wake() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

void Uploader::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

UploadStatus Uploader::GetStatus() const {
  MutexLock lock(mutex_);
  UploadStatus status = status_;
  if (!order_.empty()) {
    const auto age = std::chrono::steady_clock::now() - jobs_.at(order_.begin()->second).since;
    status.behind_seconds =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(age).count());
  }
  return status;
}

}  // namespace siltfs
