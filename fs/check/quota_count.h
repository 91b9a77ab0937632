// Counts the usage of quotas again, from the records of inodes (docs/quotas.md).
//
// Not thread-safe. Memory: some 150 bytes for each quota. Errors: those of the key-value store;
// malformed records are faults, not errors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/inode_record.h"
#include "fs/records/quota_record.h"
#include "store/base/result.h"

namespace siltfs {

struct QuotaFault {
  QuotaNumber quota = kNoQuota;  // kNoQuota: a malformed key
  std::string message;
  // The key to change, and its right value; without a value, the quota must be removed.
  std::string key;
  std::optional<std::string> value;
};

class QuotaCount {
 public:
  // Reads the quotas of this state, which must have no lineages.
  Status Load(const KvSnapshot& live);
  // Call it for each inode that is not hidden.
  void Add(uint64_t inode, const InodeRecord& record);
  // What is wrong with the quotas. `all_counted`: false if Add was not called for each inode,
  // because records are malformed. Then only faults that do not depend on inodes are returned.
  std::vector<QuotaFault> Faults(bool all_counted) const;

 private:
  struct Entry {
    std::optional<QuotaRecord> record;  // not malformed
    std::optional<QuotaUsage> stored;   // as well
    QuotaUsage counted;
    bool has_directory = false;
  };

  std::map<QuotaNumber, Entry> entries_;
  std::vector<std::string> malformed_keys_;
};

}  // namespace siltfs
