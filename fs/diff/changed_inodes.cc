#include "fs/diff/changed_inodes.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/records/schema.h"
#include "fs/versions/changed_keys.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
namespace {

void SortOnce(std::vector<uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

using VisitKey = std::function<Status(const ChangedKey&)>;

Status ForEachChanged(const ComparedStates& states, const CheckInterruption& check,
                      const VisitKey& visit) {
  uint64_t done = 0;
  return ForEachChangedKey(*states.versions, states.older, states.newer, {},
                           [&](const ChangedKey& changed) -> Result<bool> {
                             SILTFS_RETURN_IF_ERROR(visit(changed));
                             if (++done % 1024 == 0) SILTFS_RETURN_IF_ERROR(check());
                             return true;
                           });
}

Result<std::optional<NameEntry>> VersionOfName(const KvSnapshot& versions, std::string_view key,
                                               SnapshotNumber kept_for) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, versions.Get(VersionKey(key, kept_for)));
  const auto version = value ? DecodeVersion(*value) : std::nullopt;
  if (!version) return Status(StatusCode::kCorruption, "a version of a name is malformed");
  if (!*version) return std::optional<NameEntry>();
  SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(**version));
  return std::optional(entry);
}

class Finder {
 public:
  Finder(const ComparedStates& states, const CheckInterruption& check)
      : states_(states), check_(check), before_(*states.before), after_(*states.after) {}

  Result<ChangedInodes> Find() {
    SILTFS_RETURN_IF_ERROR(ForEachChangedName(states_, check_, [this](const ChangedName& name) {
      if (name.before) found_.lost_names.push_back(name.before->inode);
      if (name.after) AddGot(name.place.directory, *name.after);
      return AddDirectory(name.place.directory);
    }));
    SortOnce(found_.lost_names);
    std::vector<uint64_t> changed;
    SILTFS_RETURN_IF_ERROR(
        ForEachChanged(states_, check_, [&changed](const ChangedKey& changed_key) {
          const std::string_view key = changed_key.key;
          uint64_t inode = 0;
          const auto table = static_cast<Table>(key[0]);
          const bool of_inode =
              table == Table::kInode || table == Table::kXattr || table == Table::kOverlay;
          if (!of_inode || !IsVersionedKey(key, inode)) return Status::Ok();
          // A file may have many extents, which are listed together.
          if (changed.empty() || changed.back() != inode) changed.push_back(inode);
          return Status::Ok();
        }));
    SortOnce(changed);
    for (const uint64_t inode : changed) {
      SILTFS_RETURN_IF_ERROR(Compare(inode));
      if (++compared_ % 1024 == 0) SILTFS_RETURN_IF_ERROR(check_());
    }
    return std::move(found_);
  }

 private:
  Status Compare(uint64_t inode) {
    SILTFS_ASSIGN_OR_RETURN(const auto before, before_.FindInode(inode));
    SILTFS_ASSIGN_OR_RETURN(const auto after, after_.FindInode(inode));
    if (!before || !after || before->type() != after->type()) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const InodeDifference difference,
                            CompareInodes({*states_.before, inode, *before},
                                          {*states_.after, inode, *after}, states_.since));
    if (!difference.any()) return Status::Ok();
    const uint32_t names = after->IsDirectory() ? 1 : after->links;
    found_.differing.push_back({inode, names, difference});
    return after->parent == 0 ? Status::Ok() : AddDirectory(after->parent);
  }
  void AddGot(uint64_t directory, const NameEntry& entry) {
    found_.got_names.push_back(entry.inode);
    if (entry.IsDirectory()) found_.got_directories.push_back({entry.inode, directory});
  }
  // Adds the directory and all directories above it, as far as the newer state has them.
  Status AddDirectory(uint64_t directory) {
    while (!found_.directories.contains(directory)) {
      SILTFS_ASSIGN_OR_RETURN(const auto record, after_.FindInode(directory));
      if (!record || !record->IsDirectory()) return Status::Ok();
      found_.directories.insert(directory);
      if (directory == kRootInode) return Status::Ok();
      directory = record->parent;
    }
    return Status::Ok();
  }

  const ComparedStates& states_;
  const CheckInterruption& check_;
  TreeReader before_;
  TreeReader after_;
  ChangedInodes found_;
  uint64_t compared_ = 0;
};

}  // namespace

ComparedStates::ComparedStates(std::shared_ptr<const KvSnapshot> committed,
                               const NumberedSnapshot& from, const NumberedSnapshot* to)
    : versions(std::move(committed)),
      before(MakeSnapshotView(versions, BoundsOf(from))),
      after(to == nullptr ? MakeLineageView(versions, kLiveLineage)
                          : MakeSnapshotView(versions, BoundsOf(*to))),
      older(BoundsOf(from)),
      newer(to == nullptr ? std::numeric_limits<SnapshotNumber>::max() : to->number),
      inode_limit(from.record.inode_limit),
      since(from.record.created) {}

Status ForEachChangedName(const ComparedStates& states, const CheckInterruption& check,
                          const std::function<Status(const ChangedName&)>& visit) {
  const TreeReader after(*states.after);
  return ForEachChanged(states, check, [&](const ChangedKey& changed) -> Status {
    auto place = ParseDirectoryEntryKey(changed.key);
    if (!place) return Status::Ok();
    ChangedName name{.place = *std::move(place)};
    SILTFS_ASSIGN_OR_RETURN(name.before,
                            VersionOfName(*states.versions, changed.stored_key, changed.kept_for));
    SILTFS_ASSIGN_OR_RETURN(name.after, after.FindName(name.place));
    const bool same = name.before && name.after && name.before->inode == name.after->inode;
    if (same || (!name.before && !name.after)) return Status::Ok();
    return visit(name);
  });
}

const ChangedInodes::Differing* ChangedInodes::Find(uint64_t inode) const {
  const auto found = std::ranges::lower_bound(differing, inode, {}, &Differing::inode);
  return found != differing.end() && found->inode == inode ? &*found : nullptr;
}

bool ChangedInodes::HasLostName(uint64_t inode) const {
  return std::ranges::binary_search(lost_names, inode);
}

Result<ChangedInodes> FindChangedInodes(const ComparedStates& states,
                                        const CheckInterruption& check) {
  return Finder(states, check).Find();
}

}  // namespace siltfs
