#include "fs/attach/mount_receiver.h"

#include <chrono>
#include <utility>

#include "fs/attach/attach_message.h"

namespace siltfs {
namespace {

// How long the client may take for the mount, and the interval between checks whether the caller
// wants to stop.
constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::milliseconds kInterval{50};

}  // namespace

MountReceiver::~MountReceiver() {
  const MutexLock lock(mutex_);
  outcome_.IgnoreError("no client waits for it");
}

Status MountReceiver::Check() const {
  const MutexLock lock(mutex_);
  return CheckLocked();
}

Status MountReceiver::CheckLocked() const {
  if (state_ == State::kOpen) return Status::Ok();
  return {StatusCode::kInUse, "its daemon does not wait for a process that mounts it"};
}

Status MountReceiver::Serve(LocalStream& stream, const std::function<bool()>& stopped) {
  {
    const MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(CheckLocked());
    state_ = State::kBegun;
  }
  Status outcome = Receive(stream, stopped);
  if (outcome.ok()) return outcome;
  const MutexLock lock(mutex_);
  if (state_ == State::kBegun) failed_ = true;
  changed_.NotifyAll();
  return outcome;
}

Status MountReceiver::Receive(LocalStream& stream, const std::function<bool()>& stopped) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  auto message = stream.ReceiveDescriptors(attach::kMountBytes, 1);
  const bool left =
      message.status().Is(StatusCode::kInterrupted) || message.status().Is(StatusCode::kAborted);
  if (left || (message.ok() && !*message))
    return {StatusCode::kInterrupted, "the client has left or was silent for too long"};
  SILTFS_RETURN_IF_ERROR(message.status());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t device, attach::DecodeDevice((*message)->bytes));
  if (device == 0 || (*message)->descriptors.size() != 1)
    return {StatusCode::kInvalidArgument, "the client sent no connection of a mount"};
  const MutexLock lock(mutex_);
  if (state_ == State::kBegun) {
    received_ = ReceivedMount{std::move((*message)->descriptors[0]), device};
    state_ = State::kReceived;
    changed_.NotifyAll();
  }
  while (state_ != State::kFinished) {
    if (stopped()) return {StatusCode::kAborted, "the store is being closed"};
    changed_.WaitFor(mutex_, kInterval);
  }
  return outcome_;
}

Result<ReceivedMount> MountReceiver::Await(const std::function<bool()>& interrupted,
                                           const std::function<void()>& waiting) {
  {
    const MutexLock lock(mutex_);
    state_ = State::kOpen;
  }
  waiting();
  const MutexLock lock(mutex_);
  while (true) {
    if (received_) {
      ReceivedMount mount = *std::move(received_);
      received_.reset();
      return mount;
    }
    if (failed_) {
      return Status(StatusCode::kIoError,
                    "the process that was to mount it for this daemon has failed");
    }
    if (interrupted()) {
      return Status(StatusCode::kInterrupted, "opening the store was interrupted");
    }
    changed_.WaitFor(mutex_, kInterval);
  }
}

void MountReceiver::Finish(Status outcome) {
  const MutexLock lock(mutex_);
  if (state_ == State::kFinished) return outcome.IgnoreError("the first outcome counts");
  state_ = State::kFinished;
  received_.reset();
  outcome_ = std::move(outcome);
  changed_.NotifyAll();
}

}  // namespace siltfs
