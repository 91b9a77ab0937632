// The daemon of a mount: opens the store, serves it, and closes it.
#pragma once

#include <functional>
#include <string>

#include "fs/bucket/bucket_config.h"
#include "fs/fuse/mount_options.h"
#include "store/base/progress_meter.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

struct DaemonOptions {
  std::string store;       // absolute path
  std::string mountpoint;  // absolute path
  MountOptions mount;
  bool quiet = false;       // the launcher shows no progress
  bool foreground = false;  // log to standard error rather than to the system log
  // Another process makes the mount and hands it over. This process may then lack the rights to
  // mount and unmount, and may have a mount namespace of its own.
  bool receives_mount = false;
  bool take_over = false;  // of a bucket, from another machine whose lease has not ended
  std::optional<BucketConfig> restore_from = {};  // the store is made from this bucket
  // The mount is read-only, and follows the writer of this bucket. `store` is the directory of its
  // local files (tools/siltfs/follower.h).
  std::optional<BucketConfig> follow = {};
  // With `receives_mount`: called once, when that process may begin.
  std::function<void()> on_waiting = {};
  // Called once, on a thread of the file system, when the mount answers. It returns false if the
  // launcher (the process that started the daemon) has ended.
  std::function<bool()> on_ready;
  // If set, called at intervals while the store is opened, on a thread of its own, with the work of
  // the opening.
  std::function<void(const WorkProgress&)> on_opening = {};
  // If set, called once, when all mounts have ended or the mount has failed, before the store is
  // closed.
  std::function<void()> on_closing = {};
};

// Opens and mounts the store and serves it until it is unmounted, or until SIGINT, SIGTERM or
// SIGHUP arrives. Then it closes the store. Returns OK if everything is durable. Must be called
// before this process starts threads.
Status ServeStore(Env& env, const DaemonOptions& options);

}  // namespace siltfs
