// The mutations of one operation and their effect on the counters.
//
// An operation changes inodes in memory, collects the mutations in a Change, and passes the Change
// to ChangeApplier. If a Change is destroyed before it was applied or deferred, its inodes in
// memory may differ from metadata, so their next use loads them again. Dirty inodes are not loaded
// again, because they hold accepted changes that metadata does not have.
//
// Not thread-safe: it belongs to one operation. Ownership: borrows its inodes; the operation holds
// their locks exclusively until the Change is destroyed. No errors, no I/O.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/inodes/inode_table.h"
#include "fs/kv/kv_store.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/schema.h"

namespace siltfs {

class Change {
 public:
  Change() = default;
  // For the deferred changes of an inode, which have joined this commit.
  explicit Change(uint64_t commit) : commit_(commit) {}
  ~Change();
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  void Put(std::string key, std::string value) {
    mutations_.push_back({std::move(key), std::move(value)});
  }
  void Delete(std::string key) { mutations_.push_back({std::move(key), std::nullopt}); }
  void Count(Counter counter, int64_t difference) {
    differences_[static_cast<size_t>(counter)] += difference;
  }

  // Adds to the usage of the quota of this inode, if it has one. SaveContent counts the bytes.
  void CountUsage(const InodeRecord& record, const QuotaUsage& difference) {
    if (record.quota != kNoQuota) quotas_.emplace_back(record.quota, difference);
  }

  // Removes the records of a quota.
  void RemoveQuota(QuotaNumber quota);
  QuotaNumber removed_quota() const { return removed_quota_; }

  // Call it for inodes that the operation has changed in memory, or is about to change.
  void Include(Inode& inode) { inodes_.push_back(&inode); }
  void Include(std::initializer_list<Inode*> inodes) { inodes_.insert(inodes_.end(), inodes); }
  // Includes the inode and puts its record.
  void Save(Inode& inode);
  // Like Save, but also adds the overlay's mutations. Adds the difference between the inode's tally
  // and `before` to the counters. For a dirty inode, the tally in metadata is used instead of
  // `before`.
  void SaveContent(Inode& inode, const ContentTally& before);

  std::vector<Mutation>& mutations() { return mutations_; }
  const Counters& differences() const { return differences_; }
  const QuotaDifferences& quotas() const { return quotas_; }
  const std::vector<Inode*>& inodes() const { return inodes_; }

  // The commit that the change has joined, or was applied to.
  std::optional<uint64_t> commit() const { return commit_; }
  void SetCommit(uint64_t commit) { commit_ = commit; }
  // Call it when the change was applied or deferred: the destructor then leaves the inodes loaded.
  void SetApplied() { applied_ = true; }

 private:
  std::vector<Mutation> mutations_;
  Counters differences_{};
  QuotaDifferences quotas_;
  QuotaNumber removed_quota_ = kNoQuota;
  std::vector<Inode*> inodes_;
  std::optional<uint64_t> commit_;
  bool applied_ = false;
};

}  // namespace siltfs
