// The mutations of one operation and their effect on the counters.
//
// An operation changes inodes in memory, collects the mutations in a Change, and passes it to
// ChangeApplier. If the Change is destroyed before it was applied, its inodes may differ from
// metadata, so their next use loads them again. Dirty inodes are not loaded again: they hold
// accepted changes.
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
  // For deferred changes, which have joined this commit.
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

  // Call it for inodes that were changed in memory, or are about to be.
  void Include(Inode& inode) { inodes_.push_back(&inode); }
  void Include(std::initializer_list<Inode*> inodes) { inodes_.insert(inodes_.end(), inodes); }
  // Includes the inode and puts its record.
  void Save(Inode& inode);
  // The same, and adds the overlay and the difference in counters since `before`. For a dirty
  // inode, the difference is the one since it was last saved.
  void SaveContent(Inode& inode, const ContentTally& before);

  std::vector<Mutation>& mutations() { return mutations_; }
  const Counters& differences() const { return differences_; }
  const std::vector<Inode*>& inodes() const { return inodes_; }

  // The commit that the change has joined, or was applied to.
  std::optional<uint64_t> commit() const { return commit_; }
  void SetCommit(uint64_t commit) { commit_ = commit; }
  // From now on, the inodes in memory are accepted.
  void SetApplied() { applied_ = true; }

 private:
  std::vector<Mutation> mutations_;
  Counters differences_{};
  std::vector<Inode*> inodes_;
  std::optional<uint64_t> commit_;
  bool applied_ = false;
};

}  // namespace siltfs
