// A store with its mount and its daemon, which the test kills. The destructor ends the mount and
// the daemon. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "store/env/posix_descriptor.h"

namespace siltfs::killtest {

class MountedStore {
 public:
  // Makes the store STORE in `directory`. All functions throw Failure.
  MountedStore(std::string siltfs, std::string directory);
  ~MountedStore();
  MountedStore(const MountedStore&) = delete;
  MountedStore& operator=(const MountedStore&) = delete;

  const std::string& mountpoint() const { return mountpoint_; }

  // Mounts the store. Returns the seconds until the mount answered.
  double Mount();
  // Sends SIGKILL to the daemon and waits for its end. The mount stays, without a daemon.
  void Kill();
  // Starts to mount, and sends SIGKILL to the daemon after this time.
  void MountAndKill(std::chrono::microseconds after);
  // Removes a mount without a daemon.
  void Detach();
  // Runs `siltfs umount`; afterwards everything is durable.
  void Unmount();
  // Runs `siltfs fsck` on the unmounted store; it reads every byte.
  void Check();

 private:
  void RunOrFail(const std::string& command, const std::string& argument);
  bool IsMounted() const;
  void FindDaemon();
  void KillAndForget(pid_t daemon);

  const std::string siltfs_;
  const std::string directory_;
  const std::string store_;
  const std::string mountpoint_;
  pid_t daemon_ = -1;
};

}  // namespace siltfs::killtest
