// Explains why a store cannot be opened. Either another process uses the store (perhaps the daemon
// of the last mount, which is still closing it), or its medium is read-only.
//
// Thread-safety: from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/base/status.h"

namespace siltfs {

// Returns true if `status` says that another process holds the store's lock.
bool IsLocked(const Status& status, const std::string& store);

// Returns true if a daemon holds the store's lock and no longer answers requests, or does not
// answer them yet. Returns false if another program holds the lock.
bool IsAboutToEnd(const std::string& store);

// If a daemon is closing the store, waits until that daemon has ended; otherwise returns at once.
// Returns kInUse if the store is mounted, or an error if the daemon does not answer. While waiting
// it calls `notice` with a sentence now and then.
Status WaitUntilClosed(const std::string& store,
                       const std::function<void(const std::string&)>& notice);

// If `status` failed because the store is locked, returns an error that names the process and says
// what to do; otherwise returns `status`. `instead` is the command to use on the mountpoint if the
// store is mounted.
Status ExplainLock(Status status, const std::string& store,
                   const std::string& instead = "siltfs umount");

// If `status` failed because the store is on a read-only file system, returns an error that says so
// and what to do; otherwise returns `status`. `instead` is the second half of the message.
Status ExplainReadOnlyMedium(Status status, const std::string& store, std::string_view instead);

}  // namespace siltfs
