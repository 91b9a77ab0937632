#include "tools/siltfs/signal_watch.h"

#include <optional>
#include <utility>

#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"

namespace siltfs {

SignalWatch::SignalWatch(TerminationSignals& signals, FuseBinding& binding, std::string mountpoint,
                         std::string device, MountInUse& mount, AttachedMounts& attached,
                         std::function<void()> ending, std::shared_ptr<spdlog::logger> log)
    : signals_(signals),
      mountpoint_(std::move(mountpoint)),
      device_(std::move(device)),
      mount_(mount),
      attached_(attached),
      ending_(std::move(ending)),
      log_(std::move(log)),
      binding_(&binding),
      thread_([this] { Watch(); }) {}

SignalWatch::~SignalWatch() { End().IgnoreError("the caller has an error of its own"); }

void SignalWatch::OwnEnded() {
  const MutexLock lock(mutex_);
  binding_ = nullptr;
}

Status SignalWatch::End() {
  if (!thread_.joinable()) return Status::Ok();
  signals_.Cancel();
  thread_.join();
  return std::move(lost_);
}

void SignalWatch::Watch() {
  while (const std::optional<int> signal = signals_.Wait()) {
    {
      const MutexLock lock(mutex_);
      binding_ != nullptr ? EndOwn(*binding_, *signal) : ending_();
    }
    attached_.EndAll();
  }
}

void SignalWatch::EndOwn(FuseBinding& binding, int signal) {
  if (binding.Adopted()) {
    // After a lazy unmount, it ends when the last file is closed.
    if (!IsMountedOn(mountpoint_, device_)) return;
    log_->warn("{}: signal {}; programs that use the mount lose access to it", mountpoint_, signal);
    ending_();
    mount_.End();
    WriteBack(binding);
    binding.Stop();
    return;
  }
  log_->info("{}: signal {}, unmounting", mountpoint_, signal);
  ending_();
  const Status idle = UnmountFuse(mountpoint_);
  // After an unmount, by this call or by another program, FuseBinding::Serve returns.
  if (idle.ok() || idle.Is(StatusCode::kInvalidArgument)) return;
  log_->warn("{}; programs that use the mount lose access to it", idle.ToString());
  WriteBack(binding);
  const Status aborted = AbortMount(mountpoint_);
  if (!aborted.ok()) log_->error("{}", aborted.ToString());
}

void SignalWatch::WriteBack(FuseBinding& binding) {
  for (Status arrived : {SyncMount(mountpoint_), binding.AwaitWriteback()}) {
    if (arrived.ok()) continue;
    log_->error("{}", arrived.ToString());
    if (lost_.ok()) lost_ = std::move(arrived);
  }
}

}  // namespace siltfs
