// Checks mountpoints and paths, and probes, syncs, unmounts and aborts FUSE mounts.
//
// Thread-safety: any function from any thread. Errors name the path and say what to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

// The absolute path without symbolic links, "." and ".."; it stays valid when the working directory
// changes. The last component need not exist, all others must. kInvalidArgument for an empty path.
Result<std::string> AbsolutePath(const std::string& path);

// The absolute path from the text alone: the file system is not read, and symbolic links remain.
// nullopt for a path with "..", which cannot be resolved from the text.
std::optional<std::string> AbsoluteName(const std::string& path);

// OK if `path` can be a mountpoint: a directory on a file system that answers. A crashed FUSE file
// system does not answer.
Status CheckMountpoint(const std::string& path);

enum class MountAnswer : uint8_t {
  kAnswers,  // or this user lacks the permission to ask
  kDead,     // its daemon has ended
  kSilent,   // no answer within the limit
};

// Asks the file system mounted at `path` for its free space. If it does not answer within `limit`,
// the thread that waits for the answer is detached and ends with the process.
MountAnswer ProbeMount(const std::string& path, std::chrono::milliseconds limit);

// OK if /dev/fuse exists and can be opened.
Status CheckFuseDevice();

// Makes the descriptor non-blocking, for it and all its copies. kInvalidArgument if it is no open
// /dev/fuse for reading and writing.
Status CheckFuseDescriptor(const Descriptor& device);

// Unmounts the FUSE file system at `path`, through fusermount3 if this user lacks the rights.
// kInUse while a file on the mount is open, kInvalidArgument if nothing is mounted there.
Status UnmountFuse(const std::string& path);

// Removes the FUSE file system at `path` from the tree of directories at once, also while files on
// it are open. The file system ends when the last of these files is closed. Errors as for
// UnmountFuse, except kInUse.
Status DetachFuse(const std::string& path);

// Makes the kernel send all cached writes to the FUSE file system mounted at `path`. Whether they
// have arrived on return depends on the kernel version.
Status SyncMount(const std::string& path);

// As SyncMount, but succeeds if the file system has refused data for want of space or of quota. The
// programs that wrote the data learn of it, and Linux tells the next caller of syncfs(2), too, even
// if it has no data there.
Status SendWrites(const std::string& path);

// Aborts the FUSE connection of `path`. Users of the mount get errors from now on, unsynced writes
// are lost, and the daemon's loop ends. If this process runs as root, the mount also leaves the
// mount table. Call AbortMount if the mount is busy when its daemon must end.
Status AbortMount(const std::string& path);

}  // namespace siltfs
