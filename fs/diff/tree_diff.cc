#include "fs/diff/tree_diff.h"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/diff/changed_inodes.h"
#include "fs/diff/inode_comparison.h"
#include "fs/diff/moved_inodes.h"
#include "fs/diff/tree_reader.h"
#include "fs/interface/file_system.h"
#include "fs/records/directory_paths.h"
#include "fs/records/schema.h"
#include "fs/records/table_cursor.h"

namespace siltfs {
namespace {

// A directory that is compared; inode 0: this state does not have it.
struct Side {
  uint64_t inode = 0;
  std::string path;  // with a slash at the end
  explicit operator bool() const { return inode != 0; }
};

// A name that is in one of both directories, or in both.
struct Pair {
  std::string name;
  std::optional<NameEntry> before;
  std::optional<NameEntry> after;
};

class TreeComparison {
 public:
  TreeComparison(const ComparedStates& states, const CheckInterruption& check,
                 const std::function<Status(const PathChange&)>& visit,
                 const ChangedInodes& changed, MovedInodes moved)
      : states_(states),
        check_(check),
        visit_(visit),
        changed_(changed),
        moved_(std::move(moved)),
        before_(*states.before),
        after_(*states.after),
        old_paths_(*states.before),
        listed_(changed.differing.size()) {}

  Status Run() {
    if (const auto* root = changed_.Find(kRootInode)) SILTFS_RETURN_IF_ERROR(EmitRoot(*root));
    if (changed_.directories.contains(kRootInode))
      levels_.push_back({{kRootInode, "/"}, {kRootInode, "/"}, {}});
    uint64_t done = 0;
    while (!levels_.empty()) {
      SILTFS_ASSIGN_OR_RETURN(const auto pair, NextPair());
      if (!pair) {
        levels_.pop_back();
        continue;
      }
      SILTFS_RETURN_IF_ERROR(Visit(*pair));
      if (++done % 1024 == 0) SILTFS_RETURN_IF_ERROR(check_());
    }
    return VisitUnlisted();
  }

 private:
  struct Level {
    Side before;
    Side after;
    std::string last;  // the last name that was visited
  };

  Result<std::optional<Pair>> NextPair() {
    Level& level = levels_.back();
    std::optional<TreeReader::Name> a;
    std::optional<TreeReader::Name> b;
    if (level.before) {
      SILTFS_ASSIGN_OR_RETURN(a, before_.NextName(level.before.inode, level.last));
    }
    if (level.after) {
      SILTFS_ASSIGN_OR_RETURN(b, after_.NextName(level.after.inode, level.last));
    }
    if (!a && !b) return std::optional<Pair>();
    Pair pair;
    const bool has_a = a && (!b || a->name <= b->name);
    const bool has_b = b && (!a || b->name <= a->name);
    pair.name = has_a ? a->name : b->name;
    if (has_a) pair.before = a->entry;
    if (has_b) pair.after = b->entry;
    level.last = pair.name;
    return std::optional(std::move(pair));
  }

  // The functions below may add levels, which ends the validity of references to a level. So each
  // of them copies the paths first.
  Status Visit(const Pair& pair) {
    const Level& level = levels_.back();
    const std::string old_path = level.before.path + pair.name;
    const std::string new_path = level.after.path + pair.name;
    const NamePlace old_place{level.before.inode, pair.name};
    const uint64_t new_parent = level.after.inode;
    const uint64_t old_parent = level.before.inode;
    if (pair.before && pair.after) {
      if (pair.before->inode == pair.after->inode)
        return VisitKept(*pair.after, old_path, new_path);
      if (pair.before->type == pair.after->type && !moved_.Contains(pair.before->inode) &&
          !moved_.Contains(pair.after->inode)) {
        return VisitReplaced(pair, old_parent, new_parent, old_path, new_path);
      }
    }
    if (pair.before && !moved_.BecomesNewName(pair.before->inode, old_place))
      SILTFS_RETURN_IF_ERROR(VisitDeleted(*pair.before, old_parent, old_path));
    if (pair.after) SILTFS_RETURN_IF_ERROR(VisitNew(*pair.after, new_parent, new_path));
    return Status::Ok();
  }

  Status VisitKept(const NameEntry& entry, const std::string& old_path,
                   const std::string& new_path) {
    SILTFS_RETURN_IF_ERROR(VisitDifference(entry, old_path, new_path));
    if (entry.IsDirectory() && changed_.directories.contains(entry.inode))
      levels_.push_back({{entry.inode, old_path + "/"}, {entry.inode, new_path + "/"}, {}});
    return Status::Ok();
  }

  Status VisitDifference(const NameEntry& entry, const std::string& old_path,
                         const std::string& new_path) {
    const auto* differing = changed_.Find(entry.inode);
    // Of a file with several names, VisitUnlisted lists all.
    if (differing == nullptr || differing->names != 1) return Status::Ok();
    NoteListed(entry.inode);
    return EmitChanged(old_path, new_path, entry.type, differing->difference);
  }

  Status VisitReplaced(const Pair& pair, uint64_t old_parent, uint64_t new_parent,
                       const std::string& old_path, const std::string& new_path) {
    SILTFS_ASSIGN_OR_RETURN(const auto before, Find(before_, *pair.before));
    SILTFS_ASSIGN_OR_RETURN(const auto after, Find(after_, *pair.after));
    SILTFS_ASSIGN_OR_RETURN(
        const InodeDifference difference,
        CompareInodes({*states_.before, pair.before->inode, before},
                      {*states_.after, pair.after->inode, after}, states_.since));
    if (difference.any())
      SILTFS_RETURN_IF_ERROR(EmitChanged(old_path, new_path, pair.after->type, difference));
    NoteListed(pair.after->inode);
    if (!pair.after->IsDirectory()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(before_.ReadChildDirectory(pair.before->inode, old_parent).status());
    SILTFS_RETURN_IF_ERROR(after_.ReadChildDirectory(pair.after->inode, new_parent).status());
    levels_.push_back(
        {{pair.before->inode, old_path + "/"}, {pair.after->inode, new_path + "/"}, {}});
    return Status::Ok();
  }

  Status VisitDeleted(const NameEntry& entry, uint64_t parent, const std::string& path) {
    SILTFS_RETURN_IF_ERROR(
        visit_({.kind = ChangeKind::kDeleted, .path = path, .old_path = {}, .type = entry.type}));
    if (!entry.IsDirectory()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(before_.ReadChildDirectory(entry.inode, parent).status());
    levels_.push_back({{entry.inode, path + "/"}, {}, {}});
    return Status::Ok();
  }

  Status VisitNew(const NameEntry& entry, uint64_t parent, const std::string& path) {
    const NamePlace* const old_name = moved_.TakeOldName(entry.inode);
    if (old_name != nullptr) return VisitRenamed(entry, *old_name, path);
    NoteListed(entry.inode);
    SILTFS_RETURN_IF_ERROR(
        visit_({.kind = ChangeKind::kCreated, .path = path, .old_path = {}, .type = entry.type}));
    if (!entry.IsDirectory()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(after_.ReadChildDirectory(entry.inode, parent).status());
    levels_.push_back({{}, {entry.inode, path + "/"}, {}});
    return Status::Ok();
  }

  Status VisitRenamed(const NameEntry& entry, const NamePlace& old_name, const std::string& path) {
    SILTFS_ASSIGN_OR_RETURN(const std::string above, old_paths_.PathOf(old_name.directory));
    if (above.empty()) return Contradiction(old_name.directory, "has no path");
    PathChange change{.kind = ChangeKind::kRenamed,
                      .path = path,
                      .old_path = above + old_name.name,
                      .type = entry.type};
    if (const auto* differing = changed_.Find(entry.inode)) {
      change.content = differing->difference.content;
      change.metadata = differing->difference.metadata;
    }
    NoteListed(entry.inode);
    SILTFS_RETURN_IF_ERROR(visit_(change));
    if (entry.IsDirectory() && changed_.directories.contains(entry.inode))
      levels_.push_back({{entry.inode, change.old_path + "/"}, {entry.inode, path + "/"}, {}});
    return Status::Ok();
  }

  // The root has no name.
  Status EmitRoot(const ChangedInodes::Differing& root) {
    NoteListed(kRootInode);
    return EmitChanged("/", "/", S_IFDIR, root.difference);
  }

  Status EmitChanged(const std::string& old_path, const std::string& new_path, uint32_t type,
                     const InodeDifference& difference) {
    return visit_({.kind = ChangeKind::kChanged,
                   .path = new_path,
                   .old_path = old_path,
                   .type = type,
                   .content = difference.content,
                   .metadata = difference.metadata});
  }

  static Result<InodeRecord> Find(const TreeReader& reader, const NameEntry& entry) {
    SILTFS_ASSIGN_OR_RETURN(auto record, reader.FindInode(entry.inode));
    if (!record) return Contradiction(entry.inode, "has a name but does not exist");
    if (record->type() != entry.type)
      return Contradiction(entry.inode, "has a name of another type");
    return *std::move(record);
  }

  // Notes that the walk has listed the inode, under whatever kind of change.
  void NoteListed(uint64_t inode) {
    const auto* differing = changed_.Find(inode);
    if (differing != nullptr) listed_[Index(*differing)] = true;
  }
  size_t Index(const ChangedInodes::Differing& differing) const {
    return static_cast<size_t>(&differing - changed_.differing.data());
  }

  // Lists the differing files that the walk has not listed under all their names.
  Status VisitUnlisted() {
    bool all = true;
    for (const auto& differing : changed_.differing)
      all = all && differing.names == 1 && listed_[Index(differing)];
    if (all) return Status::Ok();
    DirectoryPaths paths(*states_.after);
    uint64_t done = 0;
    TableCursor names(*states_.after, Table::kDirectoryEntry);
    for (; names.inode() != TableCursor::kEnd; names.Next()) {
      SILTFS_RETURN_IF_ERROR(
          VisitUnlistedName({names.inode(), std::string(names.rest())}, names.value(), paths));
      if (++done % 1024 == 0) SILTFS_RETURN_IF_ERROR(check_());
    }
    return names.status();
  }

  Status VisitUnlistedName(const NamePlace& place, std::string_view value, DirectoryPaths& paths) {
    SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(value));
    const auto* differing = changed_.Find(entry.inode);
    if (differing == nullptr || (differing->names == 1 && listed_[Index(*differing)]))
      return Status::Ok();
    // New names were listed as such.
    SILTFS_ASSIGN_OR_RETURN(const auto before, before_.FindName(place));
    if (!before || before->inode != entry.inode) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const std::string above, paths.PathOf(place.directory));
    SILTFS_ASSIGN_OR_RETURN(const std::string old_above, old_paths_.PathOf(place.directory));
    // The directory is a hidden one.
    if (above.empty() || old_above.empty()) return Status::Ok();
    return EmitChanged(old_above + place.name, above + place.name, entry.type,
                       differing->difference);
  }

  const ComparedStates& states_;
  const CheckInterruption& check_;
  const std::function<Status(const PathChange&)>& visit_;
  const ChangedInodes& changed_;
  MovedInodes moved_;
  TreeReader before_;
  TreeReader after_;
  DirectoryPaths old_paths_;
  std::vector<Level> levels_;
  std::vector<bool> listed_;  // by index in changed_.differing
};

}  // namespace

Status CompareTrees(const ComparedStates& states, const CheckInterruption& check,
                    const std::function<Status(const PathChange&)>& visit) {
  SILTFS_ASSIGN_OR_RETURN(const ChangedInodes changed, FindChangedInodes(states, check));
  SILTFS_ASSIGN_OR_RETURN(MovedInodes moved, MovedInodes::Find(states, changed, check));
  return TreeComparison(states, check, visit, changed, std::move(moved)).Run();
}

}  // namespace siltfs
