// Explains why a store cannot be opened. Either another process uses the store (perhaps the daemon
// of the last mount, which is still closing it), or its medium is read-only.
//
// Thread-safety: from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "store/base/result.h"
#include "store/base/status.h"

namespace siltfs {

// Returns true if `status` says that another process holds the store's lock.
bool IsLocked(const Status& status, const std::string& store);

// Call it for a store whose lock is held. Returns true if the process that holds the lock seems to
// be about to end: a daemon that is closing the store, a daemon that does not answer requests, or a
// command that reads the store's statistics. Also returns true if this process cannot be found.
// Returns false if the daemon of a mount or another program holds the lock.
bool IsAboutToEnd(const std::string& store);

// The time that OpenWhenFree gives the holder of the lock, and the time between two attempts.
inline constexpr std::chrono::seconds kUnlockPatience{5};
inline constexpr std::chrono::milliseconds kUnlockInterval{20};

// Calls `open`, which opens the store and returns a Status or a Result. Calls it again while the
// store is locked by a holder that is about to end: a daemon removes its socket, by which
// WaitUntilClosed finds it, a moment before it unlocks the store.
template <typename Open>
auto OpenWhenFree(const std::string& store, const Open& open) {
  const auto deadline = std::chrono::steady_clock::now() + kUnlockPatience;
  while (true) {
    auto opened = open();
    if (!IsLocked(StatusOf(opened), store) || !IsAboutToEnd(store) ||
        std::chrono::steady_clock::now() > deadline) {
      return opened;
    }
    std::this_thread::sleep_for(kUnlockInterval);
  }
}

// If a daemon is closing the store, waits until that daemon has ended; otherwise returns at once.
// Returns kInUse if the store is mounted, or kIoError if the daemon does not answer. While it
// waits, it calls `notice` with a sentence every 15 seconds.
Status WaitUntilClosed(const std::string& store,
                       const std::function<void(const std::string&)>& notice);

// If `status` says that the store is locked, returns an error that names the process and says what
// to do; otherwise returns `status`. If the store is mounted, the message tells the user to run the
// command `instead` on the mountpoint.
Status ExplainLock(Status status, const std::string& store,
                   const std::string& instead = "siltfs umount");

// If `status` is kReadOnly, returns an error that says that the store is on a read-only file
// system, and what to do; otherwise returns `status`. `instead` is the second half of the message,
// which says what to do.
Status ExplainReadOnlyMedium(Status status, const std::string& store, std::string_view instead);

}  // namespace siltfs
