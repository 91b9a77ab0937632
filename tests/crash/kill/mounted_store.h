// A store, its mount and its daemon, which the test kills. Neither the mount nor the daemon
// outlives this object. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "store/env/posix_descriptor.h"

namespace siltfs::killtest {

class MountedStore {
 public:
  // Makes STORE in `directory`. Throws Failure, as all calls do.
  MountedStore(std::string siltfs, std::string directory);
  ~MountedStore();
  MountedStore(const MountedStore&) = delete;
  MountedStore& operator=(const MountedStore&) = delete;

  const std::string& mountpoint() const { return mountpoint_; }

  // Returns the seconds until the mount answered.
  double Mount();
  // Sends SIGKILL to the daemon and waits for its end. The dead mount stays.
  void Kill();
  // Starts mounting and sends SIGKILL to the daemon after this time.
  void MountAndKill(std::chrono::microseconds after);
  // Removes a dead mount.
  void Detach();
  // `siltfs umount`: everything is durable.
  void Unmount();
  // `siltfs fsck` of the unmounted store, every byte of it.
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
