// What the operations of a group change in the usage of quotas, and how a commit writes it.
//
// Operations add differences, as they do to the counters. The usage itself is written only by the
// commit, because operations that belong to an earlier group may still add to it while a later
// group has begun.
//
// Not thread-safe. Errors: those of the key-value store; kCorruption for a malformed usage.
// Durability: that of the group.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/meta/group.h"
#include "fs/records/quota_record.h"

namespace siltfs {

using QuotaDifferences = std::vector<std::pair<QuotaNumber, QuotaUsage>>;

class QuotaSums {
 public:
  void Add(const QuotaDifferences& differences) {
    for (const auto& [quota, difference] : differences) sums_[quota] += difference;
  }
  // Adds the new usage of each quota to the group, at most once. `before`: the state before the
  // group. A quota that does not exist any more is left out. If the group itself sets the usage,
  // the differences are those of later operations.
  Status WriteTo(Group& group, const KvSnapshot& before);

 private:
  std::map<QuotaNumber, QuotaUsage> sums_;
};

}  // namespace siltfs
