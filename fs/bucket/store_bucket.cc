#include "fs/bucket/store_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "fs/open/store_layout.h"
#include "fs/shipping/bucket_log.h"
#include "store/env/files.h"
#include "store/env/process.h"
#include "store/s3/s3_object_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// With sync=local, an unmount does not wait for a bucket that is slow or silent.
constexpr std::chrono::seconds kPatienceAtClose{10};
// A file that CheckBucketCache makes and removes.
constexpr std::string_view kCacheProbe = "bucket.probe";

// kInUse while another writer may be alive.
Status CheckLease(Env& env, const LogEnd& end, const WriterIdentity& own) {
  const int64_t left_ns = end.lease_end_ns - env.NowNanoseconds();
  if (end.epoch == 0 || end.writer.id == own.id || left_ns <= 0) return Status::Ok();
  return {
      StatusCode::kInUse,
      fmt::format("the store is mounted on \"{}\", as far as the bucket tells; unmount it there, "
                  "or wait {} seconds, or use --take-over if that machine is lost",
                  end.writer.host, left_ns / 1'000'000'000 + 1)};
}

BucketOptions SegmentOptions(const std::string& store, const BucketConfig& config,
                             const StoreBucketOptions& options) {
  BucketOptions made;
  made.directory = BucketCachePath(store);
  made.cache_bytes = config.cache_bytes;
  made.bucket_timeout = options.bucket_timeout;
  // The segment log tries again, and its callers have a deadline of their own
  // (FileSystemOptions::segment_patience). A thread that waited here would hold up commits.
  if (options.ships) made.room_timeout = std::chrono::nanoseconds(0);
  return made;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenObjects(Env& env, const BucketConfig& config,
                                                 std::chrono::nanoseconds deadline) {
  SILTFS_RETURN_IF_ERROR(ValidateBucketConfig(config));
  S3Options options;
  SILTFS_ASSIGN_OR_RETURN(options.address, ParseBucketUrl(config.address));
  if (!config.endpoint.empty()) {
    SILTFS_ASSIGN_OR_RETURN(options.endpoint, ParseEndpoint(config.endpoint));
  }
  options.region = config.region;
  options.ca_file = config.ca_file;
  options.credentials_file = config.credentials;
  options.deadline = deadline;
  SILTFS_ASSIGN_OR_RETURN(auto objects, S3ObjectStore::Open(env, std::move(options)));
  return std::unique_ptr<ObjectStore>(std::move(objects));
}

Status CheckNoOuterStore(Env& env, const BucketConfig& config) {
  return CheckNoOuterStore(config.address, [&](const std::string& address) {
    BucketConfig outer = config;
    outer.address = address;
    return OpenObjects(env, outer);
  });
}

Status CheckBucketCache(Env& env, const std::string& store) {
  const std::string cache = BucketCachePath(store);
  const std::string from = JoinPath(store, kCacheProbe);
  const std::string to = JoinPath(cache, kCacheProbe);
  const auto probe = env.OpenFile(from, {.mode = OpenMode::kCreate});
  if (!probe.ok() && !probe.status().Is(StatusCode::kAlreadyExists)) return Status::Ok();
  const Status moved = env.Rename(from, to);
  env.RemoveFile(moved.ok() ? to : from).IgnoreError("the next check uses the file");
  // kInvalidArgument stands for EXDEV. Other failures, as of a full disk or a directory that is
  // missing, do not belong here.
  if (!moved.Is(StatusCode::kInvalidArgument)) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                "is on another file system than the rest of the store, so that segments cannot be "
                "moved into it; unmount that file system, or put the whole store on it")
      .At(cache);
}

StoreBucket::StoreBucket(std::unique_ptr<ObjectStore> objects, Env& env, const std::string& store,
                         const BucketConfig& config, const StoreBucketOptions& options)
    : store_(store),
      objects_(std::make_unique<MonitoredObjectStore>(env, std::move(objects))),
      config_(config),
      env_(env),
      usage_(env, store, *objects_),
      patience_at_close_(
          std::min<std::chrono::nanoseconds>(options.bucket_timeout, kPatienceAtClose)),
      wait_for_bucket_(options.wait_for_bucket) {}

StoreBucket::~StoreBucket() {
  poll_.reset();
  {
    const MutexLock lock(closing_mutex_);
    end_of_reads_.reset();
    end_of_requests_.reset();
  }
  Interrupt();
}

void StoreBucket::Interrupt() {
  if (session_) session_->Interrupt();
  if (segments_) segments_->Interrupt();
  objects_->Interrupt();
}

std::function<bool()> StoreBucket::SilentFor(std::chrono::nanoseconds patience) const {
  const auto transferred = [this] {
    const ObjectStoreCounters counters = objects_->Counters();
    return counters.sent_bytes + counters.received_bytes;
  };
  return [transferred, patience, last = transferred(),
          since = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (const uint64_t bytes = transferred(); bytes != last) {
      last = bytes;
      since = now;
    }
    return now - since >= patience;
  };
}

void StoreBucket::BeginClosing() {
  if (session_) session_->BeginClosing();
  const MutexLock lock(closing_mutex_);
  if (end_of_reads_) return;
  end_of_reads_.emplace(SilentFor(patience_at_close_), [this] { objects_->InterruptReads(); });
  // The last commits are put by the time that the close of the store waits for them, at most. With
  // wait_for_bucket, programs still wait for them.
  if (wait_for_bucket_) return;
  end_of_requests_.emplace(SilentFor(3 * patience_at_close_), [this] { objects_->Interrupt(); });
}

SegmentStore& StoreBucket::segments() { return session_ ? session_->segments() : *segments_; }

std::function<Result<std::unique_ptr<KvStore>>(std::unique_ptr<KvStore>)> StoreBucket::Layer() {
  return [this](std::unique_ptr<KvStore> kv) -> Result<std::unique_ptr<KvStore>> {
    if (session_) {
      // The caller has the lock of the store now.
      SILTFS_RETURN_IF_ERROR(CheckUnchanged());
      SILTFS_RETURN_IF_ERROR(CheckBucketCache(env_, store_));
      usage_.Start();
      return session_->Layer(std::move(kv));
    }
    SILTFS_ASSIGN_OR_RETURN(const PositionRecord position, ReadPosition(*kv->Snapshot()));
    MutexLock lock(mutex_);
    position_ = position;
    return kv;
  };
}

Status StoreBucket::CheckIsLastWriter() const {
  // If the end of the log is damaged, its writer is not known.
  if (session_ || is_own_log_ || end_.next == 1 || end_.damaged) return Status::Ok();
  return Status(StatusCode::kStale,
                fmt::format("the bucket has commits of {} that this copy of the store does not "
                            "have, so it must not be changed from here",
                            end_.writer.host.empty() ? "another writer" : end_.writer.host))
      .At(store_);
}

Status StoreBucket::CheckUnchanged() const {
  SILTFS_ASSIGN_OR_RETURN(const auto now, ReadBucketConfig(env_, store_));
  if (!now || *now == config_) return Status::Ok();
  return Status(
             StatusCode::kStale,
             "siltfs tune has changed the bucket at the same time; nothing was changed, try again")
      .At(BucketConfigPath(store_));
}

Status StoreBucket::EndOpening(Status outcome) {
  poll_.reset();
  // After an interruption the bucket cannot be used, even if the store was opened nevertheless.
  if (!was_interrupted_) return outcome;
  outcome.IgnoreError("the interruption is its cause");
  return Status(StatusCode::kInterrupted, "opening the store was interrupted").At(store_);
}

Result<std::unique_ptr<StoreBucket>> StoreBucket::Open(Env& env, const std::string& store,
                                                       const StoreBucketOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto config, ReadBucketConfig(env, store));
  if (!config) return std::unique_ptr<StoreBucket>();
  // A conversion that has not finished leaves the file beside a store in its directory.
  const auto state = ReadSuperblock(env, store, StoreAccess::kReadOnly);
  if (state.ok() && !state->superblock.in_bucket()) return std::unique_ptr<StoreBucket>();
  state.status().IgnoreError("opening the store reports it");
  SILTFS_ASSIGN_OR_RETURN(auto objects, OpenObjects(env, *config,
                                                    std::min<std::chrono::nanoseconds>(
                                                        options.bucket_timeout, kRequestDeadline)));
  return OpenOver(std::move(objects), env, store, *config, options);
}

Result<std::unique_ptr<StoreBucket>> StoreBucket::OpenOver(std::unique_ptr<ObjectStore> objects,
                                                           Env& env, const std::string& store,
                                                           const BucketConfig& config,
                                                           const StoreBucketOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  std::unique_ptr<StoreBucket> bucket(
      new StoreBucket(std::move(objects), env, store, config, options));
  if (options.interrupted) {
    bucket->poll_.emplace(options.interrupted, [raw = bucket.get()] {
      raw->was_interrupted_ = true;
      raw->objects_->Interrupt();
    });
  }
  Status opened = bucket->Connect(env, state.superblock.uuid, config, options);
  if (!opened.ok()) return bucket->EndOpening(std::move(opened));
  return bucket;
}

Status StoreBucket::Connect(Env& env, const StoreUuid& uuid, const BucketConfig& config,
                            const StoreBucketOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckBucketOwner(*objects_, uuid));
  BucketOptions segments = SegmentOptions(store_, config, options);
  SILTFS_ASSIGN_OR_RETURN(const LogEnd end, ReadLogEnd(*objects_));
  if (!options.ships) {
    // Segments that a repair writes must win over those of the log's last writer.
    segments.epoch = end.epoch;
    segments_ = std::make_unique<BucketSegmentStore>(env, *objects_, std::move(segments));
    const auto writer = ReadBucketWriter(env, store_);
    is_own_log_ = writer.ok() && *writer == end.writer.id;
    end_ = end;
    return Status::Ok();
  }
  BucketSessionOptions session;
  session.store = store_;
  session.bucket = std::move(segments);
  SILTFS_ASSIGN_OR_RETURN(session.shipping.writer.id, BucketWriterOf(env, store_));
  session.shipping.writer.host = HostName();
  if (!options.take_over) SILTFS_RETURN_IF_ERROR(CheckLease(env, end, session.shipping.writer));
  session.shipping.wait_for_bucket = options.wait_for_bucket;
  if (!options.wait_for_bucket) session.shipping.close_timeout = kPatienceAtClose;
  session.shipping.given_up = [this] { objects_->Interrupt(); };
  session.shipping.fenced = options.fenced;
  session_ = std::make_unique<BucketSession>(env, *objects_, std::move(session));
  return Status::Ok();
}

Status StoreBucket::AwaitAll(const std::function<Status()>& check) {
  constexpr std::chrono::milliseconds kInterval(200);
  if (!session_) {
    return Status(StatusCode::kUnsupported, "the store is read-only, so nothing is uploaded")
        .At(store_);
  }
  for (;;) {
    SILTFS_RETURN_IF_ERROR(check());
    Status waited = session_->AwaitAll(kInterval);
    if (!waited.Is(StatusCode::kIoError)) return waited;
    waited.IgnoreError("the bucket needs more time, or fails, which Stats tells");
  }
}

BucketLag StoreBucket::LagOfReader(const PositionRecord& local) const {
  BucketLag lag;
  lag.newest = local.sequence;
  lag.shipped = end_.last;
  lag.shipped_time_ns = end_.time_ns;
  lag.epoch = end_.epoch;
  lag.host = end_.writer.host;
  lag.lease_end_ns = end_.lease_end_ns;
  lag.fenced = end_.epoch > 0 && !is_own_log_ && local.epoch < end_.epoch;
  // A repair has changed the metadata without the bucket, or nothing was ever shipped.
  lag.checkpoint_waits = local.sequence == 0;
  lag.commits = local.sequence - std::min(local.sequence, end_.last);
  if (lag.commits > 0 && end_.time_ns > 0) {
    lag.seconds =
        static_cast<double>(std::max<int64_t>(env_.NowNanoseconds() - end_.time_ns, 0)) / 1e9;
  }
  return lag;
}

StoreBucketStats StoreBucket::Stats() const {
  StoreBucketStats stats;
  stats.address = objects_->name();
  stats.requests = objects_->Counters();
  stats.total = usage_.Total();
  stats.health = objects_->Health();
  stats.prices = config_.prices;
  if (session_) {
    stats.lag = session_->lag();
  } else {
    MutexLock lock(mutex_);
    if (position_) stats.lag = LagOfReader(*position_);
  }
  const BucketSegmentStore* const segments = session_ ? session_->bucket() : segments_.get();
  if (segments != nullptr) stats.segments = segments->GetStatus();
  return stats;
}

Result<RestoredState> RestoreFromBucket(Env& env, const std::string& store,
                                        const BucketConfig& config, bool take_over) {
  SILTFS_ASSIGN_OR_RETURN(const auto objects, OpenObjects(env, config));
  // Before the superblock: a store whose bucket is not known cannot be opened.
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, ParentOf(store), store));
  SILTFS_RETURN_IF_ERROR(WriteBucketConfig(env, store, config));
  RestoreStoreOptions options;
  options.store = store;
  options.bucket_directory = BucketCachePath(store);
  SILTFS_ASSIGN_OR_RETURN(const auto id, BucketWriterOf(env, store));
  options.take_over = WriterIdentity{id, HostName()};
  if (!take_over) {
    // Another machine may take over between this look and the new epoch.
    options.may_follow = [&env, &own = *options.take_over](const LogEnd& end) {
      return CheckLease(env, end, own);
    };
    SILTFS_ASSIGN_OR_RETURN(const LogEnd end, ReadLogEnd(*objects));
    SILTFS_RETURN_IF_ERROR(options.may_follow(end));
  }
  return RestoreStore(env, *objects, options);
}

}  // namespace siltfs
