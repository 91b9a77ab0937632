#include "fs/control/snapshot_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string TimeText(int64_t nanoseconds) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(nanoseconds)));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

Json ToJson(const SnapshotInfo& snapshot) {
  return {{"name", snapshot.name},
          {"number", snapshot.number},
          {"time", TimeText(snapshot.created)},
          {"created", snapshot.created / kNanosecondsPerSecond},
          {"commit", snapshot.commit},
          {"files", snapshot.files},
          {"directories", snapshot.directories},
          {"logical_bytes", snapshot.logical_bytes},
          {"received_from",
           snapshot.received_from.empty() ? Json(nullptr) : Json(snapshot.received_from)},
          {"mounted", snapshot.shown}};
}

Json ToJson(const SnapshotSpace& space) {
  Json json = ToJson(space.snapshot);
  json["new_bytes"] = space.new_bytes;
  json["freed_bytes"] = space.freed_bytes;
  return json;
}

bool WantsSizes(const Json& arguments) {
  const auto found = arguments.find("sizes");
  return found != arguments.end() && found->is_boolean() && found->get<bool>();
}

Result<std::string> Text(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  if (found == arguments.end() || !found->is_string())
    return Status(StatusCode::kInvalidArgument, fmt::format("the request has no {}", key));
  return found->get<std::string>();
}

class SnapshotCommand {
 public:
  SnapshotCommand(Snapshots& snapshots, KernelCache* cache, const std::function<Status()>& check)
      : snapshots_(snapshots), cache_(cache), check_(check) {}

  Result<Json> Run(const Json& arguments) {
    SILTFS_ASSIGN_OR_RETURN(const std::string action, Text(arguments, "action"));
    const bool sizes = WantsSizes(arguments);
    if (action == "list") return sizes ? ListWithSizes() : List();
    SILTFS_ASSIGN_OR_RETURN(const std::string name, Text(arguments, "name"));
    if (action == "create") return Create(name);
    if (action == "show") return sizes ? ShowWithSizes(name) : Show(name);
    if (action == "delete") return Delete(name);
    if (action == "rename") {
      SILTFS_ASSIGN_OR_RETURN(const std::string new_name, Text(arguments, "new_name"));
      return Rename(name, new_name);
    }
    if (action == "rollback") {
      SILTFS_ASSIGN_OR_RETURN(const std::string kept, Text(arguments, "keep_as"));
      return RollBack(name, kept);
    }
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("there is no action \"{}\" with snapshots", action));
  }

 private:
  Result<Json> List() {
    Json list = Json::array();
    for (const SnapshotInfo& snapshot : snapshots_.List()) list.push_back(ToJson(snapshot));
    return Json{{"snapshots", std::move(list)}};
  }
  Result<std::vector<SnapshotSpace>> Measure() {
    auto spaces = snapshots_.Measure(check_);
    const Status& outcome = spaces.status();
    if (outcome.ok() || outcome.Is(StatusCode::kInterrupted) || outcome.Is(StatusCode::kAborted))
      return spaces;
    return Status(outcome.code(),
                  fmt::format("the new and freed bytes cannot be counted: {}", outcome.ToString()));
  }
  Result<Json> ListWithSizes() {
    SILTFS_ASSIGN_OR_RETURN(const std::vector<SnapshotSpace> spaces, Measure());
    Json list = Json::array();
    for (const SnapshotSpace& space : spaces) list.push_back(ToJson(space));
    return Json{{"snapshots", std::move(list)}};
  }
  Result<Json> Create(const std::string& name) {
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo made, snapshots_.Create(name));
    Forget(name);
    return ToJson(made);
  }
  Result<Json> Show(const std::string& name) {
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, snapshots_.Find(name));
    return ToJson(found);
  }
  Result<Json> ShowWithSizes(const std::string& name) {
    // A wrong name must not cost a walk.
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, snapshots_.Find(name));
    SILTFS_ASSIGN_OR_RETURN(const std::vector<SnapshotSpace> spaces, Measure());
    for (const SnapshotSpace& space : spaces) {
      if (space.snapshot.number == found.number) return ToJson(space);
    }
    return Status(StatusCode::kAborted,
                  fmt::format("the snapshot \"{}\" was deleted meanwhile", name));
  }
  Result<Json> Rename(const std::string& name, const std::string& new_name) {
    SILTFS_RETURN_IF_ERROR(snapshots_.Rename(name, new_name));
    Forget(name);
    Forget(new_name);
    return Show(new_name);
  }
  Result<Json> Delete(const std::string& name) {
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, snapshots_.Find(name));
    SILTFS_RETURN_IF_ERROR(snapshots_.Remove(name));
    Forget(name);
    return ToJson(found);
  }
  Result<Json> RollBack(const std::string& name, const std::string& kept) {
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo made, snapshots_.RollBack(name, kept, cache_));
    Forget(kept);
    return Json{{"snapshot", name}, {"kept", ToJson(made)}};
  }
  void Forget(const std::string& name) { ForgetSnapshotName(cache_, name); }

  Snapshots& snapshots_;
  KernelCache* const cache_;
  const std::function<Status()>& check_;
};

}  // namespace

Status CheckSnapshotArguments(const Json& arguments) {
  try {
    arguments.dump();
  } catch (const Json::type_error&) {
    return {StatusCode::kInvalidArgument, "the name of a snapshot must be UTF-8"};
  }
  return Status::Ok();
}

void ForgetSnapshotName(KernelCache* cache, const std::string& name) {
  if (cache == nullptr) return;
  cache->ForgetName(kSnapshotDirectory, name);
  cache->ForgetInode(kSnapshotDirectory, /*listing=*/true);
}

Result<Json> RunSnapshotCommand(FileSystem& file_system, KernelCache* cache, const Json& arguments,
                                const std::function<Status()>& check) {
  if (!arguments.is_object())
    return Status(StatusCode::kInvalidArgument, "the request has no arguments");
  SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(arguments));
  auto outcome = SnapshotCommand(file_system.snapshots(), cache, check).Run(arguments);
  // A missing snapshot is no missing store, and a mounted snapshot is no store in use. These have
  // exit codes of their own.
  if (outcome.status().Is(StatusCode::kNotFound) || outcome.status().Is(StatusCode::kInUse))
    return Status(StatusCode::kAborted, std::string(outcome.status().cause()));
  return outcome;
}

}  // namespace siltfs
