// A mounted store from opening to closing: what the process behind a mountpoint does.
#pragma once

#include <functional>
#include <string>

#include "fs/fuse/mount_options.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

struct DaemonOptions {
  std::string store;       // absolute path
  std::string mountpoint;  // absolute path
  MountOptions mount;
  bool foreground = false;  // log to standard error rather than to the system log
  // Called once, on a thread of the file system's, when the mount answers; false if nobody wants it
  // any more.
  std::function<bool()> on_ready;
};

// Opens and mounts the store and serves it until it is unmounted or SIGINT, SIGTERM or SIGHUP
// comes; then closes it. OK if everything is durable. Must be called before this process has
// threads.
Status ServeStore(Env& env, const DaemonOptions& options);

}  // namespace siltfs
