// What a mount needs of the machine before and while it stands.
//
// Thread-safety: all of it from any thread. Errors name the path and say what can be done.
#pragma once

#include <string>

#include "store/base/result.h"

namespace siltfs {

// The path from the root, without symbolic links, "." and "..", so that it stays right when the
// working directory changes. The last part need not exist, all before it must.
Result<std::string> AbsolutePath(const std::string& path);

// OK if something can be mounted on `path`: a directory that answers. A FUSE file system that
// crashed does not.
Status CheckMountpoint(const std::string& path);

// OK if /dev/fuse is there and may be opened.
Status CheckFuseDevice();

// Unmounts the FUSE file system at `path`, with fusermount3's help where that takes rights. kInUse
// while anything on it is open, kInvalidArgument if nothing is mounted there.
Status UnmountFuse(const std::string& path);

// Has the kernel write back everything it holds for the file system mounted at `path`.
Status SyncMount(const std::string& path);

// Cuts the kernel off from the FUSE daemon behind `path`: whoever uses the mount gets errors from
// now on, what was not synced is lost, and the daemon's loop ends. The mount leaves the mount
// table. For a mount that is busy when its daemon has to end.
Status AbortMount(const std::string& path);

}  // namespace siltfs
