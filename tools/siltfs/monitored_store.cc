#include "tools/siltfs/monitored_store.h"

#include "fs/control/stats_json.h"
#include "fs/open/store_stats.h"
#include "tools/siltfs/store_holder.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

Result<Json> ReadFiles(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, ReadStoreStats(env, store));
  return ToJson(stats, store, std::nullopt);
}

}  // namespace

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
