// A store that sends snapshots to the stores of sequences. Its content is the same in each process,
// so a step that receives a snapshot can be taken again from a trace.
//
// Thread-safety: every call from any thread.
#pragma once

#include <string>

#include "fs/interface/file_system.h"

namespace siltfs::testing {

inline constexpr unsigned kSentThreads = 3;  // the threads that have snapshots in it
inline constexpr unsigned kSentSnapshots = 4;

// Returns the name of the nth snapshot of a thread, without the thread: older ones have lower
// numbers. It shows a directory of the thread, as the snapshots of sequences do.
std::string SentName(unsigned nth);
bool IsSentName(const std::string& name);

// Returns the store, or a model of it. Both live until the process ends.
FileSystem& SendingStore();
FileSystem& ModelOfSendingStore();

}  // namespace siltfs::testing
