// Walks the trees below given paths in one state of the metadata, each part of a tree once.
//
// A path may lie below another one, or be given twice. The walk begins at the paths that lie below
// no other one, and says at each name which path it is, if it is one.
//
// Not thread-safe. Ownership: borrows the state and the scope, which must outlive it. Memory: 40
// bytes for each level of directories, and some 100 for each path. Errors: those of the key-value
// store, of the scope's functions and of the visitor; kAborted for a path that does not exist;
// kAccessDenied for a path that is not admitted; kCorruption, with the inode, for malformed or
// contradictory records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/diff/tree_reader.h"
#include "fs/interface/space_usage.h"
#include "fs/kv/kv_store.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"

namespace siltfs {

// A name that the walk has found. The views are valid during the call.
struct FoundName {
  uint64_t inode = 0;
  uint64_t directory = 0;  // that has the name; 0 for a path that is given without a name
  uint64_t cookie = 0;     // of the name; 0 as well
  std::string_view name = {};
  size_t root = 0;                            // the path at which the walk of this tree began
  std::optional<size_t> path = std::nullopt;  // the first given path that is this name
};

struct PathVisitor {
  // A directory; then what is in it, in the order of cookies; then `leave`.
  std::function<Status(const FoundName& directory)> enter;
  std::function<Status()> leave;
  // Another inode. A file with several names is visited with each of them.
  std::function<Status(const FoundName& file)> file;
};

class PathWalk {
 public:
  PathWalk(const KvSnapshot& state, const UsageScope& scope);

  Status Run(const PathVisitor& visitor);

  // For each path, the first one that is the same. Valid after Run.
  const std::vector<size_t>& same_as() const { return same_as_; }
  uint64_t left_out() const { return left_out_; }

 private:
  struct Given {
    uint64_t inode = 0;
    uint64_t cookie = 0;
    InodeRecord record;
  };
  struct Level {
    uint64_t directory = 0;
    uint64_t next_cookie = 0;
  };

  Result<Given> Find(const UsagePath& path) const;
  Status FindAll();
  // Whether a given directory lies above the path.
  Result<bool> LiesBelowAnother(size_t path) const;
  Result<bool> Admit(uint64_t inode, const InodeRecord& record) const;
  Status WalkFrom(size_t root, const PathVisitor& visitor);
  Status WalkDirectories(size_t root, const PathVisitor& visitor);
  Status VisitEntry(const CookieEntry& entry, FoundName found, const PathVisitor& visitor);
  Status CountName();

  const KvSnapshot& state_;
  const UsageScope& scope_;
  const TreeReader reader_;
  const std::unique_ptr<KvIterator> cookies_;
  std::vector<Given> given_;
  std::vector<size_t> same_as_;
  std::map<uint64_t, size_t> directories_;                       // given ones
  std::map<std::pair<uint64_t, uint64_t>, size_t> other_names_;  // by directory and cookie
  std::vector<Level> levels_;
  uint64_t names_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace siltfs
