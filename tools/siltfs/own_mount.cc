#include "tools/siltfs/own_mount.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/attach/attach_message.h"
#include "fs/control/protocol.h"
#include "store/env/mount_table.h"

namespace siltfs {
namespace {

// The device of the mount that the daemon has made, from the mount table. Empty if it is not there.
std::string DeviceOfMount(const DaemonOptions& options, spdlog::logger& log) {
  const auto mounts = ReadMountTable();
  if (!mounts.ok()) {
    log.warn("{}", mounts.status().ToString());
    return "";
  }
  const auto mount = std::find_if(mounts->rbegin(), mounts->rend(), [&](const Mount& candidate) {
    return candidate.mount_point == options.mountpoint && candidate.source == options.store;
  });
  return mount == mounts->rend() ? "" : mount->device;
}

FuseBindingOptions BindingOptions(const OwnMountParts& parts, std::function<void()> on_ready) {
  return {.mountpoint = parts.options.mountpoint,
          .store = parts.options.store,
          .mount = parts.options.mount,
          .log = parts.log,
          .on_ready = std::move(on_ready)};
}

Result<ReceivedMount> Receive(const OwnMountParts& parts) {
  // A read-only disk has no socket.
  const std::string& store = parts.options.store;
  ListenAbstract(parts.control, store, attach::kAwaited, parts.log);
  auto received = parts.receiver.Await([&] { return parts.signals.Pending(); },
                                       [&] { parts.options.on_waiting(); });
  parts.control.StopListening(control::AbstractName(store, attach::kAwaited));
  if (!received.ok()) return std::move(received).status().At(store);
  return received;
}

Result<OwnMount> Adopt(const OwnMountParts& parts) {
  SILTFS_ASSIGN_OR_RETURN(ReceivedMount received, Receive(parts));
  const std::string& mountpoint = parts.options.mountpoint;
  OwnMount own;
  own.device = attach::DeviceText(received.device);
  // The daemon opens files of its mount to make the kernel write them back.
  if (!IsMountedOn(mountpoint, own.device)) {
    return Status(
               StatusCode::kUnsupported,
               "the daemon does not see the mount that was made for it, because mounts of the "
               "system do not reach its mount namespace; \"mount --make-rshared /\" changes this")
        .At(mountpoint);
  }
  const auto ready = [&receiver = parts.receiver, on_ready = parts.on_ready] {
    receiver.Finish(Status::Ok());
    on_ready();
  };
  SILTFS_ASSIGN_OR_RETURN(
      own.binding, FuseBinding::Adopt(parts.env, parts.file_system, BindingOptions(parts, ready),
                                      std::move(received.connection), received.device));
  return own;
}

}  // namespace

Result<OwnMount> GetOwnMount(const OwnMountParts& parts) {
  if (parts.options.receives_mount) return Adopt(parts);
  OwnMount own;
  SILTFS_ASSIGN_OR_RETURN(own.binding, FuseBinding::Mount(parts.env, parts.file_system,
                                                          BindingOptions(parts, parts.on_ready)));
  own.device = DeviceOfMount(parts.options, *parts.log);
  return own;
}

void ListenAbstract(control::Server& control, const std::string& store, const std::string& device,
                    const std::shared_ptr<spdlog::logger>& log) {
  const Status listens = control.ListenAbstract(control::AbstractName(store, device));
  if (!listens.ok()) log->warn("{}", listens.ToString());
}

}  // namespace siltfs
