// A read-only mount of a bucket whose store is mounted for writing on another machine
// (fs/follow/followed_store.h), for the daemon.
//
//   DIR/bucket      the address of the bucket     (fs/bucket/bucket_config.h)
//   DIR/lock        locked while the mount lasts
//   DIR/follower    the local files; all of them can be fetched again
//
// Thread-safety: every call from any thread. Ownership: `env` and the functions of the options must
// outlive the follower, which must outlive the file system.
#pragma once

#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "fs/bucket/bucket_config.h"
#include "fs/bucket/interruption_poll.h"
#include "fs/follow/followed_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/object/object_store.h"
#include "tools/siltfs/daemon.h"

namespace siltfs {

class Follower {
 public:
  // Restores the newest state, and begins to follow. `state`: the options of its file system;
  // `interrupted` ends the opening. kInUse if another mount has the directory.
  static Result<std::unique_ptr<Follower>> Open(Env& env, const DaemonOptions& options,
                                                FileSystemOptions state);
  ~Follower();

  // At most one call.
  std::unique_ptr<FileSystem> NewFileSystem();
  // Null ends the use of the last one.
  void SetKernelCache(KernelCache* cache) { store_->SetKernelCache(cache); }
  // The key `bucket` of the statistics (docs/bucket.md).
  nlohmann::json Stats() const;

 private:
  Follower() = default;

  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<FollowedStore> store_;
};

}  // namespace siltfs
