// What keeps a store from being opened: the process that has it, for messages and for a mount that
// comes while the daemon of the last one is still closing the store, or a read-only medium.
//
// Thread-safety: from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/base/status.h"

namespace siltfs {

// True if `status` says that the store's lock is held.
bool IsLocked(const Status& status, const std::string& store);

// True if the store's lock is held by a daemon that answers no requests any more, or not yet; false
// if another program holds it.
bool IsAboutToEnd(const std::string& store);

// Returns at once unless a daemon is closing the store, else when that has ended. An error if the
// store is mounted (kInUse), or if the daemon does not answer. `notice` is called with a sentence
// now and then.
Status WaitUntilClosed(const std::string& store,
                       const std::function<void(const std::string&)>& notice);

// The status with a sentence that names the process which holds the store's lock and what to do, if
// that is why it failed; else the status itself. `instead` is the command to use on the mountpoint
// of a mounted store.
Status ExplainLock(Status status, const std::string& store,
                   const std::string& instead = "siltfs umount");

// The status with a sentence that says that the store is on a read-only file system, and what to do
// about it, if that is why it could not be opened for writing; else the status itself. `instead` is
// the second half of that sentence.
Status ExplainReadOnlyMedium(Status status, const std::string& store, std::string_view instead);

}  // namespace siltfs
