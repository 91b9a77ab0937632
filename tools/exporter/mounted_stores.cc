#include "tools/exporter/mounted_stores.h"

#include <future>
#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "tools/siltfs/served_mount.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using control::DaemonAddress;
using Json = nlohmann::json;

Result<std::map<std::string, DaemonAddress>> FindStores() {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<StoreMount> mounts, FindStoreMounts());
  return StoresOf(mounts);
}

// Returns null if the daemon does not answer, or does not serve this mount.
Json AskStatistics(const DaemonAddress& address, const control::Patience& patience) {
  const Status served = IdentifyServer(address, patience).status();
  if (!served.ok()) return {};
  auto statistics = control::Ask(address, "stat", patience);
  if (statistics.ok() && statistics->is_object()) return *std::move(statistics);
  statistics.status().IgnoreError("siltfs_up tells it");
  return {};
}

}  // namespace

Result<std::string> MountedStores::Metrics(MetricsFormat format) {
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!statistics_ || now - made_ >= options_.reuse) {
    statistics_.reset();
    SILTFS_ASSIGN_OR_RETURN(statistics_, Collect());
    made_ = std::chrono::steady_clock::now();
  }
  return FormatMetrics(*statistics_, format);
}

// All daemons are asked at the same time, so that one that does not answer delays no other.
Result<std::vector<StoreStatistics>> MountedStores::Collect() const {
  SILTFS_ASSIGN_OR_RETURN(const auto stores, FindStores());
  const control::Patience patience{.answer = options_.answer};
  std::map<std::string, std::future<Json>> asked;
  for (const auto& [store, address] : stores) {
    asked[store] =
        std::async(std::launch::async, AskStatistics, std::cref(address), std::cref(patience));
  }
  std::vector<StoreStatistics> answers;
  bool all = true;
  for (auto& [store, answer] : asked) {
    answers.push_back({store, answer.get()});
    all = all && !answers.back().statistics.is_null();
  }
  if (all) return answers;
  // A store that was unmounted in the meantime does not fail.
  SILTFS_ASSIGN_OR_RETURN(const auto left, FindStores());
  std::erase_if(answers, [&left](const StoreStatistics& answer) {
    return answer.statistics.is_null() && !left.contains(answer.store);
  });
  return answers;
}

}  // namespace siltfs
