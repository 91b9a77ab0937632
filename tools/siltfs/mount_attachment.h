// Hands a mount of a snapshot to the daemon that has the store open (fs/attach/attach_message.h).
// This process makes the mount, and the daemon serves it.
//
// Thread-safety: call it before this process starts threads. Errors: kInUse if the daemon cannot
// serve the mount; those of MakeMount, and those that the daemon reports. After an error nothing is
// mounted.
#pragma once

#include <optional>

#include "store/base/result.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/daemon.h"

namespace siltfs {

struct Attachment {
  int64_t pid = 0;     // of the daemon
  std::string device;  // of the mount, as in the mount table
};

// Empty if no daemon has the store open, or if it is about to close it. Waits for a daemon that is
// still starting.
Result<std::optional<Attachment>> AttachToDaemon(const DaemonOptions& options,
                                                 Surroundings& surroundings);

// Whether the mount of a snapshot, which failed because the store is in use, can be handed to a
// daemon.
bool MayAttach(const DaemonOptions& options, ExitCode code);

// Returns when the mount has ended. SIGINT, SIGTERM and SIGHUP unmount it. kAborted if the daemon
// ended before.
Status AwaitUnmount(const DaemonOptions& options, const Attachment& attachment);

}  // namespace siltfs
