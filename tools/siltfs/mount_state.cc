#include "tools/siltfs/mount_state.h"

#include <fmt/format.h>

#include <utility>

#include "fs/attach/attach_message.h"
#include "fs/control/protocol.h"

namespace siltfs {

using Json = nlohmann::json;

void MountState::Mounted(const FuseBinding* binding, std::string device) {
  const MutexLock lock(mutex_);
  binding_ = binding;
  device_ = std::move(device);
}

void MountState::OwnEnded() {
  const MutexLock lock(mutex_);
  binding_ = nullptr;
  own_ended_ = true;
}

void MountState::Closing() {
  const MutexLock lock(mutex_);
  binding_ = nullptr;
  own_ended_ = true;
  closing_ = true;
}

std::string_view MountState::Name() const {
  const MutexLock lock(mutex_);
  if (closing_) return control::kClosing;
  if (binding_ == nullptr && !own_ended_) return control::kStarting;
  if (OwnIsConnected()) return control::kMounted;
  return attached_.CloseIfEmpty() ? control::kClosing : control::kMounted;
}

std::string MountState::Mountpoint() const {
  {
    const MutexLock lock(mutex_);
    if (!own_ended_) return options_.mountpoint;
  }
  const auto attached = attached_.List();
  return attached.empty() ? options_.mountpoint : attached.front().mountpoint;
}

Json MountState::Mounts() const {
  Json mounts = Json::array();
  const auto add = [&](const std::string& mountpoint, const std::string& device,
                       const std::string& snapshot) {
    mounts.push_back({{"mountpoint", mountpoint}, {"device", device}, {"snapshot", snapshot}});
  };
  {
    const MutexLock lock(mutex_);
    if (OwnIsConnected()) add(options_.mountpoint, device_, options_.mount.snapshot);
  }
  for (const AttachedMount& mount : attached_.List())
    add(mount.mountpoint, attach::DeviceText(mount.device), mount.snapshot);
  return mounts;
}

std::string_view MountState::TransportName() const {
  const MutexLock lock(mutex_);
  if (binding_ == nullptr) return {};
  return binding_->CurrentTransport() == Transport::kRings ? "io_uring" : "dev_fuse";
}

Result<MountState::Named> MountState::Find(const Json& arguments) const {
  std::string device;
  if (arguments.is_object()) {
    const auto found = arguments.find("device");
    if (found != arguments.end() && found->is_string()) device = found->get<std::string>();
  }
  {
    const MutexLock lock(mutex_);
    const bool own = device.empty() || device_.empty() || device == device_;
    if (own && !own_ended_)
      return Named{std::shared_ptr<FileSystem>(std::shared_ptr<void>(), &file_system_), false};
  }
  if (auto attached = attached_.Find(device)) return Named{std::move(attached), true};
  return Status(StatusCode::kAborted, "its daemon does not serve this mount any more");
}

}  // namespace siltfs
