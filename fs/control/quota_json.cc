#include "fs/control/quota_json.h"

#include <optional>
#include <string>
#include <utility>

#include "fs/interface/snapshot_inode.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

Status Malformed() {
  return {StatusCode::kInvalidArgument, "the request for a quota is malformed"};
}
Status OfSnapshot() { return {StatusCode::kReadOnly, "a snapshot has no quotas"}; }
Status NoQuota() { return {StatusCode::kNoAttribute, "has no quota"}; }

std::optional<uint64_t> NumberOf(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  if (found == arguments.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

Json ToJson(const QuotaInfo& info) {
  const auto limit = [](uint64_t number) { return number == 0 ? Json() : Json(number); };
  std::string path = info.path;
  if (path.size() > 1) path.pop_back();
  return {{"path", std::move(path)},
          {"directory", info.directory},
          {"bytes_limit", limit(info.bytes_limit)},
          {"bytes", info.bytes},
          {"files_limit", limit(info.files_limit)},
          {"files", info.files}};
}

// The quota of the directory itself.
Result<std::optional<QuotaInfo>> Present(DirectoryQuotas& quotas, InodeNumber directory) {
  SILTFS_ASSIGN_OR_RETURN(auto info, quotas.Of(directory));
  if (info && info->directory != directory) info.reset();
  return info;
}

Result<Json> Set(DirectoryQuotas& quotas, const Json& arguments,
                 const std::function<Status()>& check) {
  const auto directory = NumberOf(arguments, "directory");
  if (!directory) return Malformed();
  SILTFS_ASSIGN_OR_RETURN(const auto present, Present(quotas, *directory));
  WantedLimits limits;
  limits.bytes = NumberOf(arguments, "bytes").value_or(present ? present->bytes_limit : 0);
  limits.files = NumberOf(arguments, "files").value_or(present ? present->files_limit : 0);
  SILTFS_ASSIGN_OR_RETURN(const QuotaInfo made, quotas.Set(*directory, limits, check));
  return ToJson(made);
}

Result<Json> Remove(DirectoryQuotas& quotas, const Json& arguments) {
  const auto directory = NumberOf(arguments, "directory");
  if (!directory) return Malformed();
  SILTFS_ASSIGN_OR_RETURN(const auto present, Present(quotas, *directory));
  if (!present) return NoQuota();
  SILTFS_RETURN_IF_ERROR(quotas.Remove(*directory));
  return ToJson(*present);
}

Result<Json> Show(DirectoryQuotas& quotas, const Json& arguments) {
  const auto inode = NumberOf(arguments, "inode");
  if (!inode) return Malformed();
  SILTFS_ASSIGN_OR_RETURN(const auto info, quotas.Of(*inode));
  if (!info) return NoQuota();
  return ToJson(*info);
}

Result<Json> List(DirectoryQuotas& quotas) {
  Json list = Json::array();
  SILTFS_ASSIGN_OR_RETURN(const std::vector<QuotaInfo> all, quotas.List());
  for (const QuotaInfo& info : all) list.push_back(ToJson(info));
  return Json{{"quotas", std::move(list)}};
}

Result<Json> Run(DirectoryQuotas& quotas, const Json& arguments,
                 const std::function<Status()>& check) {
  for (const char* key : {"directory", "inode"}) {
    const InodeNumber inode = NumberOf(arguments, key).value_or(0);
    if (inode >= kSnapshotDirectory || SplitSnapshotInode(inode).snapshot != 0) return OfSnapshot();
  }
  const auto action = arguments.find("action");
  if (action == arguments.end() || !action->is_string()) return Malformed();
  if (*action == "set") return Set(quotas, arguments, check);
  if (*action == "remove") return Remove(quotas, arguments);
  if (*action == "show") return Show(quotas, arguments);
  if (*action == "list") return List(quotas);
  return Malformed();
}

}  // namespace

Result<Json> RunQuotaCommand(DirectoryQuotas* quotas, const Json& arguments,
                             const std::function<Status()>& check) {
  if (quotas == nullptr) return OfSnapshot();
  if (!arguments.is_object()) return Malformed();
  auto outcome = Run(*quotas, arguments, check);
  // A busy or a missing directory is no busy or missing store. These have exit codes of their own.
  if (outcome.status().Is(StatusCode::kNotFound) || outcome.status().Is(StatusCode::kInUse))
    return Status(StatusCode::kAborted, std::string(outcome.status().cause()));
  return outcome;
}

}  // namespace siltfs
