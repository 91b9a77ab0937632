#include "tools/siltfs/follower.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "fs/bucket/store_bucket.h"
#include "fs/follow/following_file_system.h"
#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/env/process.h"
#include "tools/siltfs/store_bucket_report.h"
#include "tools/siltfs/store_with_bucket.h"

namespace siltfs {

Result<std::unique_ptr<Follower>> Follower::Open(Env& env, const DaemonOptions& options,
                                                 FileSystemOptions state) {
  std::unique_ptr<Follower> follower(new Follower());
  SILTFS_ASSIGN_OR_RETURN(follower->lock_, env.LockFile(LockPath(options.store)));
  const MountOptions& mount = options.mount;
  FollowOptions follow;
  follow.bucket.cache_bytes = options.follow->cache_bytes;
  if (mount.bucket_timeout) follow.bucket.bucket_timeout = *mount.bucket_timeout;
  SILTFS_ASSIGN_OR_RETURN(follower->objects_,
                          OpenObjects(env, *options.follow,
                                      std::min<std::chrono::nanoseconds>(
                                          follow.bucket.bucket_timeout, kRequestDeadline)));
  follow.directory = JoinPath(options.store, "follower");
  follow.state = std::move(state);
  follow.state.capacity_bytes = kBucketCapacityBytes;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(follow.reader.id));
  follow.reader.host = HostName();
  if (mount.reader_age) follow.reader.age = *mount.reader_age;
  if (mount.follow_interval) follow.interval = *mount.follow_interval;
  // The last use of `interrupted` is before the end of this call.
  const auto opening = std::make_shared<std::atomic<bool>>(true);
  const auto interrupted = follow.state.interrupted;
  follow.state.interrupted = [opening, interrupted] {
    return *opening && interrupted && interrupted();
  };
  std::atomic<bool> was_interrupted = false;
  follower->store_ = std::make_unique<FollowedStore>(env, *follower->objects_, std::move(follow));
  Status started;
  {
    std::optional<InterruptionPoll> poll;
    if (interrupted) {
      poll.emplace(interrupted, [&] {
        was_interrupted = true;
        follower->objects_->Interrupt();
      });
    }
    started = follower->store_->Start();
  }
  *opening = false;
  if (was_interrupted) {
    started.IgnoreError("the interruption is its cause");
    return Status(StatusCode::kInterrupted, "opening the store was interrupted").At(options.store);
  }
  SILTFS_RETURN_IF_ERROR(started);
  return follower;
}

Follower::~Follower() {
  if (store_) store_->Stop();
}

std::unique_ptr<FileSystem> Follower::NewFileSystem() {
  return std::make_unique<FollowingFileSystem>(*store_);
}

nlohmann::json Follower::Stats() const {
  StoreBucketStats stats;
  stats.address = objects_->name();
  stats.requests = objects_->Counters();
  stats.segments = store_->segments();
  nlohmann::json json = ToJson(stats);
  const FollowStatus status = store_->status();
  json["follows"] = true;
  json["shown_commit"] = status.commit;
  json["shown_at"] = static_cast<double>(status.commit_ns) / 1e9;
  json["newest_commit"] = status.newest;
  json["follow_seconds_behind"] = status.behind_seconds;
  json["epoch"] = status.epoch;
  json["restarts"] = status.restarts;
  json["given_up"] = status.lapsed;
  json["last_follow_error"] = status.last_error;
  return json;
}

}  // namespace siltfs
