// siltfs list
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "fs/control/stats_check.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/list_report.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using control::DaemonAddress;
using Json = nlohmann::json;

control::Patience ListPatience() { return {.answer = std::chrono::seconds(10)}; }

// The answers of a store's daemon.
struct Answers {
  std::optional<control::Identity> daemon;
  Json statistics;  // null: there is no answer
  std::string health;
};

Answers AskDaemon(const DaemonAddress& address) {
  Answers answers;
  const auto daemon = control::Identify(address, ListPatience());
  if (!daemon.ok()) {
    answers.health = HealthWord(daemon.status());
    return answers;
  }
  answers.daemon = *daemon;
  if (daemon->state == control::kClosing) {
    answers.health = control::kClosing;
    return answers;
  }
  auto statistics = control::Ask(address, "stat", ListPatience());
  if (statistics.ok()) statistics = CheckStats(*std::move(statistics));
  answers.health = statistics.ok() ? HealthWord(*statistics) : HealthWord(statistics.status());
  if (statistics.ok()) answers.statistics = *std::move(statistics);
  return answers;
}

// Returns the snapshot's record, or null. Any user can mount something that claims to be a store,
// so the record is checked.
Json AskSnapshot(const DaemonAddress& address, const std::string& name) {
  const auto record = control::AskWith(
      address,
      {.command = "snapshot", .arguments = {{"action", "show"}, {"name", name}, {"sizes", false}}},
      ListPatience());
  if (!record.ok()) {
    record.status().IgnoreError("the list shows no figures of it");
    return {};
  }
  const auto has = [&](const char* key) {
    return record->contains(key) && record->at(key).is_number_unsigned();
  };
  return has("files") && has("logical_bytes") ? *record : Json();
}

// Returns the element of the list for this mount. The answers are those of its store's daemon.
Json Describe(const StoreMount& mount, const Answers& answers) {
  const DaemonAddress& address = mount.address;
  Json row = {{"store", address.store},
              {"mountpoint", address.mountpoint},
              {"label", Json()},
              {"uuid", Json()},
              {"snapshot", Json()},
              {"read_only", mount.read_only},
              {"pid", Json()},
              {"answers", false},
              {"health", answers.health},
              {"logical_bytes", Json()},
              {"stored_bytes", Json()},
              {"files", Json()},
              {"total_ratio", Json()}};
  if (!answers.daemon) return row;
  auto served = ServedMountOf(address, *answers.daemon);
  if (!served && answers.daemon->state == control::kMounted) {
    const auto again = IdentifyServer(address, ListPatience());
    if (!again.ok()) {
      row["health"] = HealthWord(again.status());
      return row;
    }
    served = ServedMountOf(address, *again);
  }
  row["pid"] = answers.daemon->pid;
  const bool is_snapshot = served && !served->snapshot.empty();
  if (is_snapshot) {
    row["snapshot"] = served->snapshot;
    row["read_only"] = true;  // whatever the options of the mount say
  }
  if (answers.statistics.is_null()) return row;
  row["answers"] = true;
  if (answers.statistics.at("read_only") == true) row["read_only"] = true;
  row["label"] = answers.statistics.at("label");
  row["uuid"] = answers.statistics.at("uuid");
  row["stored_bytes"] = answers.statistics.at("stored_bytes");
  row["total_ratio"] = answers.statistics.at("total_ratio");
  const Json shown = is_snapshot ? AskSnapshot(address, served->snapshot) : answers.statistics;
  if (shown.is_null()) return row;
  row["files"] = shown.at("files");
  row["logical_bytes"] = shown.at("logical_bytes");
  return row;
}

bool Has(const std::vector<StoreMount>& mounts, const StoreMount& wanted) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const StoreMount& mount) {
    return mount.address.device == wanted.address.device &&
           mount.address.mountpoint == wanted.address.mountpoint;
  });
}

// All daemons are asked at the same time, so that one that does not answer delays no other.
Result<Json> ListMounts() {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<StoreMount> mounts, FindStoreMounts());
  const std::map<std::string, DaemonAddress> stores = StoresOf(mounts);
  std::map<std::string, std::future<Answers>> asked;
  for (const auto& [store, address] : stores)
    asked[store] = std::async(std::launch::async, AskDaemon, std::cref(address));
  std::map<std::string, Answers> answers;
  for (auto& [store, answer] : asked) answers[store] = answer.get();
  Json rows = Json::array();
  for (const StoreMount& mount : mounts)
    rows.push_back(Describe(mount, answers.at(mount.address.store)));
  // A daemon that was unmounted in the meantime has not crashed.
  SILTFS_ASSIGN_OR_RETURN(const std::vector<StoreMount> left, FindStoreMounts());
  Json listed = Json::array();
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (rows[i].at("answers") == true || Has(left, mounts[i])) listed.push_back(std::move(rows[i]));
  }
  return listed;
}

}  // namespace

std::function<ExitCode()> ConfigureList(CLI::App& app, Surroundings& surroundings) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON document instead of a table");
  return [json, &surroundings] {
    const Result<Json> mounts = ListMounts();
    if (!mounts.ok()) return Fail(surroundings, mounts.status());
    if (*json) {
      PrintJson(surroundings, {{"mounts", *mounts}});
    } else {
      surroundings.out << FormatList(*mounts) << std::flush;
    }
    return ExitCode::kDone;
  };
}

}  // namespace siltfs
