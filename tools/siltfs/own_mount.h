// The mount that a daemon serves on its own mountpoint: the daemon makes it, or another process
// makes it and hands it over (fs/attach/mount_receiver.h).
//
// Thread-safety: call it on the thread that then serves the mount.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "fs/attach/mount_receiver.h"
#include "fs/control/server.h"
#include "fs/fuse/fuse_binding.h"
#include "store/base/result.h"
#include "store/env/process.h"
#include "tools/siltfs/daemon.h"

namespace siltfs {

struct OwnMount {
  std::unique_ptr<FuseBinding> binding;
  std::string device;  // as in the mount table; empty if it is unknown
};

struct OwnMountParts {
  Env& env;
  FileSystem& file_system;
  const DaemonOptions& options;
  MountReceiver& receiver;
  control::Server& control;
  TerminationSignals& signals;
  std::function<void()> on_ready;  // see FuseBindingOptions
  std::shared_ptr<spdlog::logger> log;
};

// Errors: those of FuseBinding::Mount; those of MountReceiver::Await; kUnsupported if this process
// does not see the mount that was handed over. The caller finishes the receiver.
Result<OwnMount> GetOwnMount(const OwnMountParts& parts);

// Listens on the abstract name, by which clients that cannot reach the store's directory find the
// daemon.
void ListenAbstract(control::Server& control, const std::string& store, const std::string& device,
                    const std::shared_ptr<spdlog::logger>& log);

}  // namespace siltfs
