// Explains why a store cannot be opened: another process has it (perhaps the daemon of the last
// mount, which is still closing it), or its medium is read-only.
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

// True if the store's lock is held by a daemon that no longer answers requests, or does not yet;
// false if another program holds it.
bool IsAboutToEnd(const std::string& store);

// If a daemon is closing the store, waits until it has ended; otherwise returns at once. An error
// if the store is mounted (kInUse), or if the daemon does not answer. Calls `notice` with a
// sentence now and then.
Status WaitUntilClosed(const std::string& store,
                       const std::function<void(const std::string&)>& notice);

// If `status` failed because the store is locked, returns a sentence that names the process and
// what to do; else `status` itself. `instead` is the command to use on the mountpoint of a mounted
// store.
Status ExplainLock(Status status, const std::string& store,
                   const std::string& instead = "siltfs umount");

// If `status` failed because the store is on a read-only file system, returns a sentence that says
// so and what to do; else `status` itself. `instead` is the second half of that sentence.
Status ExplainReadOnlyMedium(Status status, const std::string& store, std::string_view instead);

}  // namespace siltfs
