// Lets another process make the mount of a daemon that lacks the rights to mount, or whose own
// mount namespace would hide the mount from others. That process makes the mount (MakeMount) and
// sends its connection in the session "mount":
//
//   client  kMountBytes bytes (attach_message.h): the mount's device number, together with the
//           descriptor of its connection to the kernel
//   daemon  the result of the session: null once the kernel has accepted the mount, or the failure
//
// Only one client is served. If it leaves without a mount, the wait of the daemon fails.
//
// Thread-safety: every call from any thread. Ownership: nothing is kept of a mount that Await has
// not returned. Errors of a session: kInUse if the daemon does not wait for a mount, or if another
// client is making it; kInvalidArgument if the client does not follow the protocol; kInterrupted if
// it leaves or is silent for too long.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/local_socket.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

struct ReceivedMount {
  Descriptor connection;
  uint64_t device = 0;  // see attach_message.h
};

class MountReceiver {
 public:
  MountReceiver() = default;
  ~MountReceiver();
  MountReceiver(const MountReceiver&) = delete;
  MountReceiver& operator=(const MountReceiver&) = delete;

  // OK while Await waits for a client.
  Status Check() const SILTFS_EXCLUDES(mutex_);
  // Serves a client. Returns after Finish, or when the client has failed.
  Status Serve(LocalStream& stream, const std::function<bool()>& stopped) SILTFS_EXCLUDES(mutex_);

  // Waits until a client has sent a mount. Calls `waiting` once, when clients are accepted.
  // kInterrupted once `interrupted` returns true. Call it once, and then Finish, also after an
  // error.
  Result<ReceivedMount> Await(const std::function<bool()>& interrupted,
                              const std::function<void()>& waiting) SILTFS_EXCLUDES(mutex_);
  // Tells the client whether its mount is served. Only the first call counts.
  void Finish(Status outcome) SILTFS_EXCLUDES(mutex_);

 private:
  enum class State : uint8_t { kClosed, kOpen, kBegun, kReceived, kFinished };

  Status CheckLocked() const SILTFS_REQUIRES(mutex_);
  Status Receive(LocalStream& stream, const std::function<bool()>& stopped) SILTFS_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  State state_ SILTFS_GUARDED_BY(mutex_) = State::kClosed;
  std::optional<ReceivedMount> received_ SILTFS_GUARDED_BY(mutex_);
  bool failed_ SILTFS_GUARDED_BY(mutex_) = false;  // the client has left without a mount
  Status outcome_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
