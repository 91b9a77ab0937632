#include "tools/siltfs/served_mount.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "fs/control/protocol.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

// How long the program that mounts a snapshot may take to hand the mount over to the daemon, which
// does not report the mount before.
constexpr std::chrono::milliseconds kHandOver{500};

}  // namespace

Result<control::Identity> IdentifyServer(const control::DaemonAddress& address,
                                         const control::Patience& patience) {
  for (int attempt = 0;; ++attempt) {
    SILTFS_ASSIGN_OR_RETURN(control::Identity daemon, control::Identify(address, patience));
    if (daemon.state != control::kMounted || !daemon.mounts || ServedMountOf(address, daemon))
      return daemon;
    if (attempt > 0) {
      return Status(StatusCode::kStale,
                    fmt::format("the daemon of this mount was killed or crashed, and process {} "
                                "serves the store now; \"umount --lazy {}\" removes the mount",
                                daemon.pid, address.mountpoint))
          .At(address.mountpoint);
    }
    std::this_thread::sleep_for(kHandOver);
  }
}

}  // namespace siltfs
