// What may have changed between two states, from the versions that the changes have left.
//
// A key has changed if it has a version that serves the older state but not the newer one. Keys of
// newer inodes are not looked at: a walk of the new directories finds them.
//
// Cost: two lookups for each changed key. Memory: some 8 bytes for each inode that lost or got a
// name, 16 for each changed inode, and 64 for each directory. Not thread-safe. Errors: those of the
// key-value store; kCorruption for malformed records.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "fs/diff/compared_states.h"
#include "fs/diff/inode_comparison.h"
#include "fs/diff/tree_reader.h"
#include "fs/records/directory_entry.h"

namespace siltfs {

// A name that leads to another inode in the newer state, or is in one of the states only.
struct ChangedName {
  NamePlace place;
  std::optional<NameEntry> before = {};
  std::optional<NameEntry> after = {};
};

// Visits each changed name once, but not the names in new directories.
Status ForEachChangedName(const ComparedStates& states, const CheckInterruption& check,
                          const std::function<Status(const ChangedName&)>& visit);

struct ChangedInodes {
  // An inode that has a name in both states, and differs.
  struct Differing {
    uint64_t inode = 0;
    uint32_t names = 0;  // in the newer state
    InodeDifference difference;
  };
  std::vector<Differing> differing;  // ascending
  // The directories of the newer state whose names must be compared to find all changes: those with
  // changed names, those of the differing inodes, and all directories above these.
  std::unordered_set<uint64_t> directories;
  std::vector<uint64_t> lost_names;  // inodes that lost a name; ascending, each once
  std::vector<uint64_t> got_names;   // inodes that got a name, once for each name
  struct GotDirectory {
    uint64_t inode = 0;
    uint64_t parent = 0;
  };
  std::vector<GotDirectory> got_directories;  // the directories in got_names

  // Null if the inode does not differ.
  const Differing* Find(uint64_t inode) const;
  bool HasLostName(uint64_t inode) const;
};

Result<ChangedInodes> FindChangedInodes(const ComparedStates& states,
                                        const CheckInterruption& check);

}  // namespace siltfs
