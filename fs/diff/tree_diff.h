// Lists the paths that differ between two states, without reading data.
//
// The time is proportional to the changes and to the sizes of the directories on the way to them:
// versions (fs/versions/version_key.h) list the changed records, and the records of inodes name
// their directories. Only if a changed file has several names, or does not know its directory, all
// names of the newer state are read.
//
// Kinds of changes: a path that is in both states is changed if its data or attributes differ, also
// if it is another file of the same type now. A file or directory that has another path, and not
// its old one, is renamed; the paths below a renamed directory are not listed. All paths below new
// and removed directories are listed. A path that leads to another type of inode is deleted and
// created.
//
// Thread-safety: pure function. Errors: those of the key-value store, `visit` and `check`;
// kCorruption for contradictory records. Memory: that of ChangedInodes and MovedInodes, and a level
// for each directory on the way.
#pragma once

#include <functional>

#include "fs/diff/compared_states.h"
#include "fs/interface/path_change.h"

namespace siltfs {

// A directory is visited before the paths below it. Changes of files that need all names come last.
Status CompareTrees(const ComparedStates& states, const CheckInterruption& check,
                    const std::function<Status(const PathChange&)>& visit);

}  // namespace siltfs
