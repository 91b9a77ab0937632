#include "tools/siltfs/monitored_store.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "fs/control/protocol.h"
#include "fs/control/stats_json.h"
#include "fs/open/store_stats.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// How long the program that mounts a snapshot may take to hand the mount over to the daemon, which
// does not report the mount before.
constexpr std::chrono::milliseconds kHandOver{500};

Result<Json> ReadFiles(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, ReadStoreStats(env, store));
  return ToJson(stats, store, std::nullopt);
}

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

Result<Json> ReadMonitoredStatistics(Env& env, const control::DaemonAddress& address,
                                     const control::Patience& patience) {
  const bool is_mount = !address.mountpoint.empty();
  // The store may be mounted or unmounted between the two steps. So both are tried twice.
  for (int attempt = 0;; ++attempt) {
    if (is_mount) {
      const Status served = IdentifyServer(address, patience).status();
      if (!served.ok() && !served.Is(StatusCode::kAborted)) return served;
    }
    auto mounted = control::Ask(address, "stat", patience);
    if (mounted.ok() || !control::IsGone(mounted.status())) return mounted;
    if (is_mount && !mounted.status().Is(StatusCode::kAborted)) return mounted;
    auto read = OpenWhenFree(address.store, [&] { return ReadFiles(env, address.store); });
    if (read.ok()) return read;
    if (attempt > 0 || !read.status().Is(StatusCode::kInUse))
      return ExplainLock(std::move(read).status(), address.store);
  }
}

std::string_view HealthWord(const Json& statistics) {
  if (!statistics.at("read_only_cause").is_null()) return "failed";
  if (statistics.at("damaged_blocks") != 0) return "damaged";
  if (statistics.at("index_replay").at("running") == true) return "rebuilding";
  return "ok";
}

std::string_view HealthWord(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::kStale:
    case StatusCode::kNotFound:
      return "crashed";
    case StatusCode::kAborted:
      return "closing";
    case StatusCode::kNotPermitted:
      return "not permitted";
    default:
      return "not answering";
  }
}

}  // namespace siltfs
