// While a SignalWatch exists, its thread unmounts the mounts of the daemon when a signal asks the
// daemon to end.
//
// Thread-safety: one thread makes and destroys it and calls OwnEnded and End.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <spdlog/logger.h>

#include "fs/attach/attached_mounts.h"
#include "fs/fuse/fuse_binding.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"
#include "store/env/process.h"
#include "tools/siltfs/mount_state.h"

namespace siltfs {

class SignalWatch {
 public:
  // `binding`, also in `mount`, is the daemon's own mount, on `mountpoint` and with `device` in the
  // mount table. `ending` is called when a signal has come, before the kernel writes back its data.
  SignalWatch(TerminationSignals& signals, FuseBinding& binding, std::string mountpoint,
              std::string device, MountInUse& mount, AttachedMounts& attached,
              std::function<void()> ending, std::shared_ptr<spdlog::logger> log);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The binding is not used any more when this has returned.
  void OwnEnded() SILTFS_EXCLUDES(mutex_);
  // Stops watching. Returns an error if an unmount due to a signal has lost data that programs had
  // written.
  Status End();

 private:
  void Watch() SILTFS_EXCLUDES(mutex_);
  void EndOwn(FuseBinding& binding, int signal);
  void WriteBack(FuseBinding& binding);

  TerminationSignals& signals_;
  const std::string mountpoint_;
  const std::string device_;
  MountInUse& mount_;
  AttachedMounts& attached_;
  const std::function<void()> ending_;
  const std::shared_ptr<spdlog::logger> log_;
  Mutex mutex_;  // held while the own mount is being unmounted
  FuseBinding* binding_ SILTFS_GUARDED_BY(mutex_);
  Status lost_;  // End reads it after the thread has ended
  std::thread thread_;
};

}  // namespace siltfs
