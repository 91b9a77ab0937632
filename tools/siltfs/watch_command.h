// The live view of `siltfs stat --watch`.
#pragma once

#include <chrono>
#include <string>

#include "fs/control/client.h"
#include "tools/siltfs/command.h"

namespace siltfs {

// kInvalidArgument if the text is not a number of seconds in the range that --watch accepts.
Result<std::chrono::milliseconds> ParseWatchInterval(const std::string& text);

// Shows what the mounted store is doing, once in each interval, until the mount ends (kDone), until
// a signal asks this process to end (kInterrupted), or until the output cannot be written. A store
// that is not mounted is a failure.
ExitCode WatchStore(const control::DaemonAddress& address, std::chrono::milliseconds interval,
                    bool json, Surroundings& surroundings);

}  // namespace siltfs
