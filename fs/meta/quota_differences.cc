#include "fs/meta/quota_differences.h"

#include <optional>

namespace siltfs {
namespace {

// The usage that the differences are added to; nullopt if there is no such quota.
Result<std::optional<QuotaUsage>> UsageBefore(const Group& group, const KvSnapshot& before,
                                              const std::string& key) {
  std::optional<std::string> value;
  std::string in_group;
  switch (group.Find(key, &in_group)) {
    case Group::Presence::kRemoved:
      return std::optional<QuotaUsage>();
    case Group::Presence::kPresent:
      value = std::move(in_group);
      break;
    case Group::Presence::kAbsent: {
      SILTFS_ASSIGN_OR_RETURN(value, before.Get(key));
      break;
    }
  }
  if (!value) return std::optional<QuotaUsage>();
  SILTFS_ASSIGN_OR_RETURN(const QuotaUsage usage, DecodeUsage(*value));
  return std::optional(usage);
}

}  // namespace

Status QuotaSums::WriteTo(Group& group, const KvSnapshot& before) {
  std::vector<Mutation> mutations;
  for (const auto& [quota, sum] : sums_) {
    std::string key = QuotaKey(quota, QuotaPart::kUsage);
    SILTFS_ASSIGN_OR_RETURN(auto usage, UsageBefore(group, before, key));
    if (!usage || sum == QuotaUsage{}) continue;
    *usage += sum;
    mutations.push_back({std::move(key), EncodeUsage(*usage)});
  }
  if (!mutations.empty()) group.Add(std::move(mutations));
  sums_.clear();  // another attempt of the same commit must not add them again
  return Status::Ok();
}

}  // namespace siltfs
