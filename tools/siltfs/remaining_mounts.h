// Removes the mounts that remain when a daemon has ended that could not unmount them: after a
// crash, or because it lacks the rights (siltfs mount --part=serve).
//
// Thread-safety: any function from any thread.
#pragma once

#include <string>

#include "fs/fuse/mount_options.h"
#include "store/base/result.h"
#include "tools/siltfs/command.h"

namespace siltfs {

// Removes the mount on `mountpoint` and all mounts of `store`, if this user has made them and their
// daemons have ended. Files on them may be open; their users get errors since the daemon ended.
// Removes also the mount of this snapshot on `mountpoint` if the daemon of another mount serves it.
// Leaves all other mounts. `store`: the store's directory, or the error of the attempt to find it.
ExitCode RemoveMounts(const Result<std::string>& store, const MountOptions& options,
                      const std::string& mountpoint, Surroundings& surroundings);

}  // namespace siltfs
