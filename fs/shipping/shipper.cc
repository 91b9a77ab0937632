#include "fs/shipping/shipper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/records/position_record.h"
#include "fs/shipping/object_keys.h"

namespace siltfs {
namespace {

constexpr std::chrono::milliseconds kFirstPause(200);
constexpr std::chrono::seconds kLongestPause(10);
// Between looks at the readers: while a deletion waits for them, and otherwise.
constexpr std::chrono::nanoseconds kLookInterval = std::chrono::seconds(2);
constexpr std::chrono::nanoseconds kIdleLookInterval = std::chrono::minutes(1);
constexpr uint64_t kCheckpointShare = 4;  // of the last checkpoint, in log bytes

uint64_t PlainBytes(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const CheckpointPart& part : manifest.parts) bytes += part.plain_bytes;
  return bytes;
}

int64_t Steady() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

Shipper::Shipper(Env& env, ObjectStore& objects, ShippingOptions options, ShippedData* data)
    : env_(env),
      objects_(objects),
      options_(std::move(options)),
      data_(data),
      log_(objects, options_.writer),
      watch_(objects) {}

Shipper::~Shipper() { Stop(); }

Status Shipper::Begin(uint64_t newest, uint32_t epoch) {
  MutexLock round(round_mutex_);
  const int64_t now = env_.NowNanoseconds();
  const auto check = [&](const LogEnd& end) {
    // Another writer may have made commits in each epoch that this store has not seen.
    // Without a position, but with the bucket: the store was repaired or written without the
    // bucket (ForgetPosition).
    if (newest == 0 && end.writer == options_.writer) newest = end.last + 1;
    const bool known = epoch == end.epoch || (end.damaged && epoch >= end.read_epoch) ||
                       end.writer == options_.writer;
    if (end.next == 1 || (known && newest >= end.last)) return Status::Ok();
    return Status(StatusCode::kStale,
                  fmt::format("the bucket has commits of {} that this copy of the store does not "
                              "have: restore the store from the bucket",
                              end.writer.host.empty() ? "another writer" : end.writer.host))
        .At(objects_.name());
  };
  bool must_checkpoint = false;
  SILTFS_RETURN_IF_ERROR(log_.Begin(
      [&](const LogEnd& end) {
        const Status checked = check(end);
        must_checkpoint = end.damaged || newest != end.last;
        return checked;
      },
      now, now + options_.lease.count()));
  SILTFS_RETURN_IF_ERROR(LoadManifests());
  MutexLock lock(mutex_);
  epoch_ = log_.epoch();
  shipped_ = log_.end().last;
  shipped_time_ns_ = log_.end().time_ns;
  newest_ = newest;
  last_put_ = Steady();
  lease_end_ns_ = log_.end().lease_end_ns;
  checkpoint_bytes_ = PlainBytes(newest_manifest_);
  if (must_checkpoint || newest_manifest_.number == 0) {
    dropped_ = newest + 1;
    // Commits of earlier runs are as old as this at most. Without it, each new mount of a store
    // whose bucket is slow would report a small lag.
    dropped_since_ns_ = shipped_time_ns_;
  }
  return Status::Ok();
}

// Finds the two newest checkpoints that are valid.
Status Shipper::LoadManifests() {
  std::vector<uint64_t> numbers;
  SILTFS_RETURN_IF_ERROR(
      ForEachObject(objects_, std::string(kManifestPrefix), [&](const ObjectInfo& info) {
        if (const uint64_t number = ParseManifestKey(info.key); number > 0)
          numbers.push_back(number);
        return Status::Ok();
      }));
  std::vector<Manifest> valid;
  for (auto number = numbers.rbegin(); number != numbers.rend() && valid.size() < 2; ++number) {
    auto manifest = ReadValidManifest(objects_, *number);
    if (manifest.ok()) {
      valid.push_back(std::move(manifest).value());
    } else if (!manifest.status().Is(StatusCode::kCorruption)) {
      return manifest.status();
    }
  }
  if (!valid.empty()) newest_manifest_ = valid[0];
  if (valid.size() > 1) older_manifest_ = valid[1];
  return Status::Ok();
}

uint32_t Shipper::epoch() const {
  MutexLock lock(mutex_);
  return epoch_;
}

void Shipper::Start(CommittedSnapshot snapshot) {
  snapshot_ = std::move(snapshot);
  if (options_.background) thread_ = std::thread([this] { ThreadMain(); });
}

void Shipper::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

// --- The writers' side.

void Shipper::Enqueue(uint64_t sequence, std::string commit) {
  MutexLock lock(mutex_);
  newest_ = sequence;
  const int64_t now = env_.NowNanoseconds();
  const bool waits_for_checkpoint = dropped_ > shipped_ && !collecting_;
  if (waits_for_checkpoint || queued_bytes_ + commit.size() > options_.queue_bytes) {
    if (dropped_since_ns_ == 0) dropped_since_ns_ = queue_.empty() ? now : queue_.front().time_ns;
    dropped_bytes_ += commit.size();
    DropQueue(sequence);
  } else {
    queued_bytes_ += commit.size();
    queue_.push_back({sequence, now, Steady(), std::move(commit)});
  }
  changed_.NotifyAll();
}

void Shipper::NeedCheckpoint(uint64_t sequence) {
  MutexLock lock(mutex_);
  newest_ = sequence;
  if (dropped_since_ns_ == 0) {
    dropped_since_ns_ = queue_.empty() ? env_.NowNanoseconds() : queue_.front().time_ns;
  }
  DropQueue(sequence);
  changed_.NotifyAll();
}

void Shipper::DropQueue(uint64_t sequence) {
  dropped_ = sequence;
  dropped_bytes_ += queued_bytes_;
  queue_.clear();
  queued_bytes_ = 0;
  collecting_ = false;
}

Status Shipper::CheckNotFenced() const {
  MutexLock lock(mutex_);
  if (!fenced_) return Status::Ok();
  return Status(StatusCode::kReadOnly, fence_cause_).At(objects_.name());
}

Status Shipper::WaitShipped(uint64_t sequence, std::optional<std::chrono::nanoseconds> timeout) {
  return Wait(sequence, timeout, /*is_change=*/false);
}

Status Shipper::WaitBeforeChange(uint64_t sequence, std::chrono::nanoseconds timeout) {
  return Wait(sequence, timeout, /*is_change=*/true);
}

void Shipper::BeginClosing() {
  MutexLock lock(mutex_);
  if (!closing_since_) closing_since_ = std::chrono::steady_clock::now();
  changed_.NotifyAll();
}

Status Shipper::Wait(uint64_t sequence, std::optional<std::chrono::nanoseconds> timeout,
                     bool is_change) {
  if (!options_.background) {
    SILTFS_RETURN_IF_ERROR(Ship());
    return CheckNotFenced();
  }
  const auto begin = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> end;
  if (timeout) end = begin + *timeout;
  MutexLock lock(mutex_);
  wanted_ = std::max(wanted_, sequence);
  changed_.NotifyAll();
  while (shipped_ < sequence) {
    if (fenced_) return Status(StatusCode::kReadOnly, fence_cause_).At(objects_.name());
    if (stopping_ || interrupted_ || (is_change && closing_since_))
      return Status(StatusCode::kInterrupted, "the store is being closed").At(objects_.name());
    if (closing_since_ && !timeout) end = std::max(begin, *closing_since_) + options_.close_timeout;
    if (end && *end <= std::chrono::steady_clock::now()) {
      return Status(StatusCode::kIoError,
                    fmt::format("the bucket does not have the last {} commits yet{}{}",
                                newest_ - shipped_,
                                last_error_.empty() ? "" : "; last error: ", last_error_))
          .At(objects_.name());
    }
    end ? changed_.WaitFor(mutex_, *end - std::chrono::steady_clock::now()) : changed_.Wait(mutex_);
  }
  return Status::Ok();
}

uint64_t Shipper::Position() {
  MutexLock lock(mutex_);
  return newest_;
}

bool Shipper::MayDelete(uint64_t position) {
  {
    MutexLock lock(mutex_);
    if (fenced_ || epoch_ == 0 || shipped_ < position) return false;
    if (looked_ && deletable_ >= position) return true;
    wanted_deletable_ = std::max(wanted_deletable_, position);
    changed_.NotifyAll();
    if (options_.background) return false;  // the thread looks
  }
  LookAtReaders().IgnoreError("the content stays for now");
  MutexLock lock(mutex_);
  return looked_ && deletable_ >= position;
}

Status Shipper::LookAtReaders() {
  MutexLock look(readers_mutex_);
  uint64_t shipped = 0;
  const int64_t now = Steady();
  {
    MutexLock lock(mutex_);
    shipped = shipped_;
    last_look_ = now;
  }
  const auto view = watch_.Look(now);
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(view.status());
  looked_ = true;
  readers_ = *view;
  deletable_ = std::max(deletable_, std::min(shipped, view->reached));
  return Status::Ok();
}

bool Shipper::LookIsDue() const {
  if (!last_look_) return true;
  const bool waits = !looked_ || (wanted_deletable_ > deletable_ && shipped_ > deletable_);
  return Steady() - *last_look_ >= (waits ? kLookInterval : kIdleLookInterval).count();
}

BucketLag Shipper::lag() const {
  MutexLock lock(mutex_);
  BucketLag lag;
  lag.commits = newest_ - std::min(shipped_, newest_);
  lag.bytes = queued_bytes_ + dropped_bytes_;
  int64_t since = dropped_since_ns_;
  if (since == 0 && !queue_.empty()) since = queue_.front().time_ns;
  if (lag.commits > 0 && since != 0)
    lag.seconds = static_cast<double>(std::max<int64_t>(env_.NowNanoseconds() - since, 0)) / 1e9;
  lag.shipped = shipped_;
  lag.shipped_time_ns = shipped_time_ns_;
  lag.newest = newest_;
  lag.epoch = epoch_;
  lag.checkpoint_waits = dropped_ > shipped_;
  lag.fenced = fenced_;
  lag.log_objects = put_objects_;
  lag.checkpoints = made_checkpoints_;
  lag.metadata_bytes = checkpoint_bytes_ + log_bytes_;
  lag.host = options_.writer.host;
  lag.lease_end_ns = lease_end_ns_;
  lag.last_error = last_error_;
  lag.readers = readers_.readers;
  if (readers_.readers > 0) lag.slowest_reader = readers_.reached;
  return lag;
}

// --- The thread.

bool Shipper::CheckpointDue() const {
  if (dropped_ > shipped_) return true;
  return log_objects_ > options_.checkpoint_objects ||
         log_bytes_ > std::max(options_.checkpoint_bytes, checkpoint_bytes_ / kCheckpointShare);
}

bool Shipper::HeartbeatDue() const {
  return options_.lease.count() > 0 && Steady() - last_put_ >= options_.lease.count() / 3;
}

bool Shipper::HasWork() const {
  if (CheckpointDue() || (options_.background && HeartbeatDue())) return true;
  if (queue_.empty()) return false;
  const int64_t age = Steady() - queue_.front().queued;
  return !options_.background || wanted_ > shipped_ || queued_bytes_ >= options_.object_bytes ||
         age >= options_.interval.count();
}

void Shipper::WaitForWork() {
  // Also the time after which the age of the first commit is looked at again.
  constexpr std::chrono::milliseconds kLook(100);
  // An idle writer must not sleep over the renewal of its lease.
  const auto idle = std::clamp<std::chrono::nanoseconds>(
      options_.lease / 6, std::chrono::milliseconds(5), std::chrono::seconds(1));
  while (!stopping_ && !HasWork() && !LookIsDue()) {
    queue_.empty() ? changed_.WaitFor(mutex_, idle) : changed_.WaitFor(mutex_, kLook);
  }
}

void Shipper::ThreadMain() {
  std::chrono::nanoseconds pause = kFirstPause;
  for (;;) {
    bool look = false;
    bool round = false;
    {
      MutexLock lock(mutex_);
      WaitForWork();
      if (stopping_ || fenced_) return;
      look = LookIsDue();
      round = HasWork();
    }
    if (look) LookAtReaders().IgnoreError("the next look finds out what may be deleted");
    if (!round) continue;
    const Status done = RunRound();
    if (done.ok()) {
      pause = kFirstPause;
      continue;
    }
    const auto end = std::chrono::steady_clock::now() + pause;
    pause = std::min<std::chrono::nanoseconds>(pause * 2, kLongestPause);
    MutexLock lock(mutex_);
    if (done.Is(StatusCode::kInterrupted)) {
      // ObjectStore::Interrupt is final, so no round will succeed.
      interrupted_ = true;
      changed_.NotifyAll();
    }
    while (!stopping_ && !fenced_) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      changed_.WaitFor(mutex_, left);
    }
  }
}

Status Shipper::Ship() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (fenced_) return Status(StatusCode::kReadOnly, fence_cause_).At(objects_.name());
      if (shipped_ >= newest_ && !HasWork()) return Status::Ok();
    }
    const Status round = RunRound();
    if (round.ok()) continue;
    SILTFS_RETURN_IF_ERROR(CheckNotFenced());
    return round;
  }
}

Status Shipper::EndLease() {
  MutexLock round(round_mutex_);
  {
    MutexLock lock(mutex_);
    if (fenced_ || shipped_ < newest_ || log_.is_pending() || options_.lease.count() == 0)
      return Status::Ok();
  }
  return ShipCommits(UINT64_MAX, std::chrono::nanoseconds(0));
}

Status Shipper::RunRound() {
  Status result;
  {
    MutexLock round(round_mutex_);
    bool checkpoint = false;
    {
      MutexLock lock(mutex_);
      checkpoint = CheckpointDue();
    }
    result = log_.is_pending() ? Confirm()
             : checkpoint      ? MakeCheckpoint()
                               : ShipCommits(UINT64_MAX, options_.lease);
  }
  if (result.Is(StatusCode::kStale)) Fence(result);
  MutexLock lock(mutex_);
  last_error_ = result.ok() ? "" : result.ToString();
  changed_.NotifyAll();
  return result;
}

Result<std::string> Shipper::Attachment() const {
  return options_.attachment ? options_.attachment() : Result<std::string>(std::string());
}

Status Shipper::Upload() { return data_ == nullptr ? Status::Ok() : data_->Upload(log_.epoch()); }

Status Shipper::ShipCommitsOfCheckpoint(uint64_t sequence) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      const bool waits = dropped_ <= shipped_ && !queue_.empty() &&
                         queue_.front().sequence <= sequence && !stopping_;
      if (!waits) return Status::Ok();
    }
    SILTFS_RETURN_IF_ERROR(ShipCommits(sequence, options_.lease));
  }
}

Status Shipper::ShipCommits(uint64_t limit, std::chrono::nanoseconds lease) {
  LogObject object;
  {
    MutexLock lock(mutex_);
    object.first = shipped_ + 1;
    object.last = shipped_;
    object.time_ns = shipped_time_ns_;
    for (const Waiting& waiting : queue_) {
      if (!object.commits.empty() && object.commits.size() >= options_.object_bytes) break;
      if (waiting.sequence > limit) break;
      object.commits += waiting.commit;
      object.last = waiting.sequence;
      object.time_ns = waiting.time_ns;
    }
    // The bucket has all commits up to now. So the lag after a crash is not counted from the last
    // commit of a writer that was idle for days.
    if (object.commits.empty() && shipped_ >= newest_) object.time_ns = env_.NowNanoseconds();
  }
  SILTFS_RETURN_IF_ERROR(Upload());
  SILTFS_ASSIGN_OR_RETURN(object.attachment, Attachment());
  object.lease_end_ns = env_.NowNanoseconds() + lease.count();
  pending_last_ = object.last;
  pending_bytes_ = object.commits.size();
  SILTFS_RETURN_IF_ERROR(log_.Prepare(std::move(object)));
  return Confirm();
}

void Shipper::LeaveToCheckpoint(uint64_t sequence) {
  MutexLock lock(mutex_);
  // Otherwise the log still brings these commits to the bucket, also to readers that follow it.
  if (dropped_ <= shipped_) return;
  while (!queue_.empty() && queue_.front().sequence <= sequence) {
    queued_bytes_ -= queue_.front().commit.size();
    dropped_bytes_ += queue_.front().commit.size();
    dropped_ = queue_.front().sequence;
    queue_.pop_front();
  }
}

Result<std::string> Shipper::PutManifest(Manifest& manifest) {
  for (;;) {
    manifest.number = log_.next();
    std::string bytes = EncodeManifest(manifest);
    // An attempt whose answer was lost may put another manifest with this number, even late. It
    // must not replace one that is valid. (A writer that was fenced goes on at the number of the
    // next epoch.)
    const auto put =
        objects_.Put(ManifestKey(manifest.number), AsBytes(bytes), PutCondition::IfAbsent());
    if (put.ok()) return bytes;
    if (!put.status().Is(StatusCode::kAlreadyExists)) return put.status();
    // An object without commits takes the number.
    SILTFS_RETURN_IF_ERROR(ShipCommits(0, options_.lease));
  }
}

Status Shipper::MakeCheckpoint() {
  Manifest manifest;
  manifest.epoch = log_.epoch();
  const int64_t time_ns = env_.NowNanoseconds();
  {
    {
      // Commits behind the snapshot need not wait for a checkpoint of their own.
      MutexLock lock(mutex_);
      collecting_ = true;
    }
    const auto snapshot = snapshot_();
    SILTFS_ASSIGN_OR_RETURN(const PositionRecord position, ReadPosition(*snapshot));
    manifest.sequence = position.sequence;
    LeaveToCheckpoint(manifest.sequence);
    KnownParts known = PartsOf(older_manifest_);
    for (const auto& part : PartsOf(newest_manifest_))
      known.insert_or_assign(part.first, part.second);
    SILTFS_ASSIGN_OR_RETURN(PutParts put,
                            PutCheckpointParts(objects_, *snapshot, log_.epoch(), known, [this] {
                              MutexLock lock(mutex_);
                              return stopping_;
                            }));
    manifest.records = put.records;
    manifest.parts = std::move(put.parts);
  }
  SILTFS_RETURN_IF_ERROR(ShipCommitsOfCheckpoint(manifest.sequence));
  SILTFS_RETURN_IF_ERROR(Upload());
  SILTFS_ASSIGN_OR_RETURN(manifest.attachment, Attachment());
  SILTFS_ASSIGN_OR_RETURN(const std::string bytes, PutManifest(manifest));
  LogObject object;
  object.kind = LogKind::kCheckpoint;
  object.first = manifest.sequence + 1;
  object.last = manifest.sequence;
  object.time_ns = time_ns;
  object.lease_end_ns = env_.NowNanoseconds() + options_.lease.count();
  object.manifest = ChecksumOfManifest(AsBytes(bytes));
  object.attachment = manifest.attachment;
  pending_last_ = object.last;
  pending_bytes_ = 0;
  SILTFS_RETURN_IF_ERROR(log_.Prepare(std::move(object)));
  pending_manifest_ = std::move(manifest);
  return Confirm();
}

Status Shipper::Confirm() {
  SILTFS_RETURN_IF_ERROR(log_.Confirm());
  const bool checkpoint = pending_manifest_.has_value();
  if (checkpoint) {
    older_manifest_ = std::move(newest_manifest_);
    newest_manifest_ = *std::exchange(pending_manifest_, std::nullopt);
  }
  {
    MutexLock lock(mutex_);
    NoteProgress(pending_last_);
    shipped_time_ns_ = log_.end().time_ns;
    lease_end_ns_ = log_.end().lease_end_ns;
    last_put_ = Steady();
    ++put_objects_;
    ++log_objects_;
    log_bytes_ += pending_bytes_;
    if (checkpoint) {
      ++made_checkpoints_;
      log_objects_ = 0;
      log_bytes_ = 0;
      checkpoint_bytes_ = PlainBytes(newest_manifest_);
    }
    changed_.NotifyAll();
  }
  if (data_ != nullptr) data_->Shipped(pending_last_);
  if (checkpoint) RemoveOld();
  return Status::Ok();
}

void Shipper::NoteProgress(uint64_t sequence) {
  shipped_ = std::max(shipped_, sequence);
  while (!queue_.empty() && queue_.front().sequence <= shipped_) {
    queued_bytes_ -= queue_.front().commit.size();
    queue_.pop_front();
  }
  if (dropped_ > shipped_) return;
  collecting_ = false;
  dropped_bytes_ = 0;
  dropped_since_ns_ = 0;
}

void Shipper::Fence(const Status& cause) {
  {
    MutexLock lock(mutex_);
    if (fenced_) return;
    fenced_ = true;
    fence_cause_ = fmt::format("the store turned read-only: {}", cause.cause());
    changed_.NotifyAll();
  }
  if (options_.fenced) options_.fenced(cause);
}

}  // namespace siltfs
