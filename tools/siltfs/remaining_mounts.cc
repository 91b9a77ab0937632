#include "tools/siltfs/remaining_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "fs/control/client.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using control::DaemonAddress;

// How long a mount may take to answer a probe. A mount that is silent has a daemon.
constexpr std::chrono::seconds kProbe{10};

bool ShowsSnapshot(const DaemonAddress& address, const std::string& snapshot) {
  if (snapshot.empty()) return false;
  const auto daemon = control::Identify(address);
  if (!daemon.ok()) return false;
  const auto served = ServedMountOf(address, *daemon);
  return served && served->snapshot == snapshot;
}

// Any user can make a mount that names any store, and probing it may take long.
bool IsOwn(const DaemonAddress& address) { return address.owner == CurrentUserId(); }

}  // namespace

ExitCode RemoveMounts(const Result<std::string>& store, const MountOptions& options,
                      const std::string& mountpoint, Surroundings& surroundings) {
  const std::string of_store = store.ok() ? *store : "";
  if (!store.ok()) store.status().IgnoreError("the mount on the mountpoint is removed anyway");
  const auto there = FindMount(mountpoint);
  if (!there.ok()) return Fail(surroundings, ExitCode::kFailed, there.status().ToString());
  auto mounts = FindStoreMounts();
  if (!mounts.ok()) return Fail(surroundings, ExitCode::kFailed, mounts.status().ToString());
  // A later mount may cover an earlier one.
  std::reverse(mounts->begin(), mounts->end());
  ExitCode code = ExitCode::kDone;
  for (const auto& [address, read_only] : *mounts) {
    const bool is_there = *there && address.mountpoint == (*there)->mountpoint;
    if ((!is_there && address.store != of_store) || !IsOwn(address)) continue;
    if (!IsMountedOn(address.mountpoint, address.device)) continue;
    const bool dead = ProbeMount(address.mountpoint, kProbe) == MountAnswer::kDead;
    if (!dead && !(is_there && ShowsSnapshot(address, options.snapshot))) continue;
    const Status removed = DetachFuse(address.mountpoint);
    if (!removed.ok()) {
      code = Fail(surroundings, ExitCode::kFailed, removed.ToString());
    } else if (dead) {
      Say(surroundings, fmt::format("{}: the mount is removed, because its daemon has ended",
                                    address.mountpoint));
    }
  }
  return code;
}

}  // namespace siltfs
