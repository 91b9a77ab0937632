#include "fs/attach/attached_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "fs/attach/attach_message.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"

namespace siltfs {
namespace {

using Clock = std::chrono::steady_clock;

// The interval between checks whether the caller wants to stop.
constexpr std::chrono::milliseconds kInterval{50};

}  // namespace

AttachedMounts::~AttachedMounts() {
  EndAll();
  AwaitEnd();
}

Status AttachedMounts::CheckRoom() const {
  const MutexLock lock(mutex_);
  return CheckRoomLocked();
}

Status AttachedMounts::CheckRoomLocked() const {
  if (closed_) return {StatusCode::kAborted, "the store is being closed"};
  const auto count = std::count_if(mounts_.begin(), mounts_.end(),
                                   [](const Served& served) { return !served.ended; });
  if (static_cast<size_t>(count) < kMost) return Status::Ok();
  return {StatusCode::kInUse,
          fmt::format("its daemon serves {} mounts of snapshots already; unmount one of them, or "
                      "use the directory .snapshots",
                      kMost)};
}

Status AttachedMounts::Add(AttachRequest request, const std::function<bool()>& stopped) {
  SILTFS_ASSIGN_OR_RETURN(const Place place, Start(std::move(request)));
  const auto deadline = Clock::now() + kReadyPatience;
  for (bool stop = false;; stop = stopped() || Clock::now() > deadline) {
    const MutexLock lock(mutex_);
    if (stop && place->binding != nullptr) place->binding->Stop();
    if (!place->ready && !place->ended) changed_.WaitFor(mutex_, kInterval);
    if (place->ready && !stop) {
      place->adding = false;
      return Status::Ok();
    }
    if (!place->ended) continue;
    Status outcome = std::move(place->outcome);
    place->thread.join();
    mounts_.erase(place);
    if (!outcome.ok()) return outcome;
    return {StatusCode::kIoError, "the kernel has not accepted the mount"};
  }
}

Result<AttachedMounts::Place> AttachedMounts::Start(AttachRequest request) {
  std::list<Served> added(1);
  Served& served = added.front();
  served.mount = std::move(request.mount);
  served.shown = std::move(request.shown);
  MountOptions mount;
  mount.read_only = true;
  mount.no_xattrs = request.no_xattrs;
  mount.max_read = request.max_read;
  mount.owners = request.owners;
  mount.io_uring = IoUringUse::kOff;  // the mount needs few threads
  const auto ready = [this, &served] {
    const MutexLock lock(mutex_);
    served.ready = true;
    changed_.NotifyAll();
  };
  SILTFS_ASSIGN_OR_RETURN(served.binding, FuseBinding::Adopt(env_, *served.shown,
                                                             {.mountpoint = served.mount.mountpoint,
                                                              .store = options_.store,
                                                              .mount = std::move(mount),
                                                              .log = options_.log,
                                                              .on_ready = ready,
                                                              .threads = kThreads,
                                                              .request_bytes = kRequestBytes},
                                                             std::move(request.connection)));
  const MutexLock lock(mutex_);
  Sweep();
  SILTFS_RETURN_IF_ERROR(CheckRoomLocked());
  try {
    served.thread = std::thread([this, &served] { Serve(served); });
  } catch (const std::system_error&) {
    return Status(StatusCode::kIoError, "no thread is available for the mount; try again later")
        .At(served.mount.mountpoint);
  }
  mounts_.splice(mounts_.end(), added);
  return std::prev(mounts_.end());
}

void AttachedMounts::Serve(Served& served) {
  FuseBinding* binding = nullptr;
  {
    const MutexLock lock(mutex_);  // Start has added the mount when it unlocks this
    binding = served.binding.get();
  }
  const AttachedMount& mount = served.mount;
  options_.log->info("{}: snapshot \"{}\" is mounted on {}", options_.store, mount.snapshot,
                     mount.mountpoint);
  const std::string device = attach::DeviceText(mount.device);
  if (options_.begun && !device.empty()) options_.begun(device);
  Status outcome = binding->Serve();
  if (options_.ended && !device.empty()) options_.ended(device);
  std::unique_ptr<FuseBinding> ending;
  std::shared_ptr<FileSystem> shown;
  {
    const MutexLock lock(mutex_);
    ending = std::move(served.binding);
    shown = std::move(served.shown);
  }
  ending.reset();
  shown.reset();
  if (!outcome.ok()) options_.log->error("{}", outcome.ToString());
  options_.log->info("{}: snapshot \"{}\" is no longer mounted on {}", options_.store,
                     mount.snapshot, mount.mountpoint);
  const MutexLock lock(mutex_);
  served.outcome = std::move(outcome);
  served.ended = true;
  changed_.NotifyAll();
}

std::vector<AttachedMount> AttachedMounts::List() const {
  const MutexLock lock(mutex_);
  std::vector<AttachedMount> list;
  for (const Served& served : mounts_) {
    if (!served.ended) list.push_back(served.mount);
  }
  return list;
}

std::shared_ptr<FileSystem> AttachedMounts::Find(const std::string& device) const {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(mounts_.rbegin(), mounts_.rend(), [&](const Served& served) {
    return served.mount.device != 0 && attach::DeviceText(served.mount.device) == device &&
           served.shown != nullptr;
  });
  return found == mounts_.rend() ? nullptr : found->shown;
}

bool AttachedMounts::AnyServed() const {
  return std::any_of(mounts_.begin(), mounts_.end(),
                     [](const Served& served) { return !served.ended; });
}

void AttachedMounts::Sweep() {
  for (auto place = mounts_.begin(); place != mounts_.end();) {
    const auto next = std::next(place);
    if (place->ended && !place->adding) {
      place->thread.join();  // the thread no longer needs the mutex
      place->outcome.IgnoreError("the thread has logged it");
      mounts_.erase(place);
    }
    place = next;
  }
}

bool AttachedMounts::CloseIfEmpty() {
  const MutexLock lock(mutex_);
  if (AnyServed()) return false;
  closed_ = true;
  return true;
}

void AttachedMounts::AwaitEnd() {
  const MutexLock lock(mutex_);
  while (AnyServed()) changed_.Wait(mutex_);
  closed_ = true;
  Sweep();
}

void AttachedMounts::EndAll() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  if (options_.may_unmount) {
    for (const AttachedMount& mount : List()) Detach(mount);
  }
  const MutexLock lock(mutex_);
  for (const Served& served : mounts_) {
    if (served.binding != nullptr) served.binding->Stop();
  }
}

void AttachedMounts::Detach(const AttachedMount& mount) {
  if (!IsMountedOn(mount.mountpoint, attach::DeviceText(mount.device))) return;
  const Status idle = UnmountFuse(mount.mountpoint);
  if (idle.ok()) return;
  options_.log->warn("{}; programs that use the mount lose access to it", idle.ToString());
  const Status aborted = AbortMount(mount.mountpoint);
  if (!aborted.ok()) options_.log->error("{}", aborted.ToString());
}

}  // namespace siltfs
