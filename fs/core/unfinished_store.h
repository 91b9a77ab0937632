// A store that mkfs is making, or did not finish: after a power cut or on a full disk.
//
// The first thing that mkfs makes in a store's directory is a mark, the directory
// `mkfs.unfinished`, and durable before anything else is there; the last thing that it does is to
// remove it. A directory with the mark may hold what mkfs makes, by the names that mkfs uses, and
// is then mkfs's to empty. A store that was mounted for writing, or repaired, is complete whether
// the mark is there or not: its superblock was written more than once.
//
// Not thread-safe: the caller of everything but Mark holds the store's lock. Errors: Env's.
// Durability: as stated.
#pragma once

#include <string>

#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

// Marks an empty directory, durably. kAlreadyExists if it is marked. A failure leaves no mark, if
// the device lets it.
Status MarkUnfinished(Env& env, const std::string& store);
// Removes the mark, durably: the store is complete.
Status MarkFinished(Env& env, const std::string& store);

// Of a directory that is marked, removes what mkfs has made in it, except for the lock and the
// mark. kNotEmpty if the mark is gone, if the store is complete, or if there is anything that mkfs
// does not make; then nothing was removed.
Status RemoveUnfinishedStore(Env& env, const std::string& store);

}  // namespace siltfs
