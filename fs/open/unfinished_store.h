// A store that mkfs is making, or did not finish because of a power cut or a full disk.
//
// mkfs first makes a mark in the store's directory: the directory `mkfs.unfinished`. The mark is
// durable before anything else is made, and removing it is the last step. In a marked directory,
// mkfs may remove the files that have the names of its own files. But a store that was mounted for
// writing, or repaired, is complete even if the mark is still there. It is recognised by its
// superblock, which was written more than once.
//
// Not thread-safe: the caller holds the store's lock, except for MarkUnfinished. Errors: Env's.
// Durability: as stated.
#pragma once

#include <string>

#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

// Marks an empty directory, durably. kAlreadyExists if it is marked. A failure leaves no mark, if
// the device permits its removal.
Status MarkUnfinished(Env& env, const std::string& store);
// Removes the mark, durably: the store is complete.
Status MarkFinished(Env& env, const std::string& store);

// Removes the files of mkfs from a marked directory, except the lock and the mark. kNotEmpty if the
// mark is gone, if the store is complete, or if there is anything that mkfs does not make; then
// nothing was removed.
Status RemoveUnfinishedStore(Env& env, const std::string& store);

}  // namespace siltfs
