// Hands a mount to a daemon: that of a snapshot to the daemon that has the store open
// (fs/attach/attach_message.h), or its own mount to a daemon that waits for it
// (fs/attach/mount_receiver.h). This process makes the mount, and the daemon serves it.
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

// Makes the mount of a daemon that waits for it. Returns when the mount answers. False if the mount
// shows a snapshot and the daemon of the store does not wait for a mount: AttachToDaemon may mount
// it. kNotFound if no daemon has the store open.
Result<bool> HandOver(const DaemonOptions& options);

// Waits until another process has handed a mount of the snapshot to the daemon that has the store
// open. Calls `options.on_waiting` when that process may begin. Empty if no daemon has the store
// open, or if it is about to close it.
Result<std::optional<Attachment>> AwaitAttachment(const DaemonOptions& options);

// Returns when the mount has ended. SIGINT, SIGTERM and SIGHUP unmount it, or with
// `options.receives_mount` end only this call. kAborted if the daemon ended before.
Status AwaitUnmount(const DaemonOptions& options, const Attachment& attachment);

}  // namespace siltfs
