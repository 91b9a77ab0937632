// The inodes that have lost a name and got another one: files and directories that were renamed.
//
// Cost: a walk of all new directories, if any inode has lost a name. Memory: the old names of these
// inodes, and some 100 bytes for each. Not thread-safe. Errors: those of the key-value store;
// kCorruption for contradictory records.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fs/diff/changed_inodes.h"
#include "fs/diff/compared_states.h"
#include "fs/diff/tree_reader.h"

namespace siltfs {

class MovedInodes {
 public:
  static Result<MovedInodes> Find(const ComparedStates& states, const ChangedInodes& changed,
                                  const CheckInterruption& check);

  bool Contains(uint64_t inode) const { return moved_.contains(inode); }
  // The old name that became a new name of the inode. Each old name is returned once; nullptr if
  // none is left, so that the new name is one more name of the inode.
  const NamePlace* TakeOldName(uint64_t inode);
  // Whether TakeOldName has returned this old name, or will do so.
  bool BecomesNewName(uint64_t inode, const NamePlace& old_name) const;

 private:
  struct Names {
    std::vector<NamePlace> old_names;
    size_t got = 0;    // number of new names
    size_t taken = 0;  // number of old names that were returned
    size_t pairs() const { return old_names.size() < got ? old_names.size() : got; }
  };
  std::map<uint64_t, Names> moved_;
};

}  // namespace siltfs
