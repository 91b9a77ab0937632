// What a mount needs of the machine before and while it stands.
//
// Thread-safety: all of it from any thread. Errors name the path and say what can be done.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "store/base/result.h"

namespace siltfs {

// The path from the root, without symbolic links, "." and "..", so that it stays right when the
// working directory changes. The last part need not exist, all before it must.
// kInvalidArgument for an empty path.
Result<std::string> AbsolutePath(const std::string& path);

// The path from the root by its name alone: nothing on the way is looked at, and symbolic links
// stay. Nothing for a path with "..", which means a place that only a look can tell.
std::optional<std::string> AbsoluteName(const std::string& path);

// OK if something can be mounted on `path`: a directory that answers. A FUSE file system that
// crashed does not.
Status CheckMountpoint(const std::string& path);

enum class MountAnswer : uint8_t {
  kAnswers,  // or this user may not ask
  kDead,     // its daemon has ended
  kSilent,   // not within the time given
};

// Asks the file system mounted at `path` for its free space. A thread that waits for a silent one
// is left behind; it ends with the process.
MountAnswer ProbeMount(const std::string& path, std::chrono::milliseconds limit);

// OK if /dev/fuse is there and may be opened.
Status CheckFuseDevice();

// Unmounts the FUSE file system at `path`, with fusermount3's help where that takes rights. kInUse
// while anything on it is open, kInvalidArgument if nothing is mounted there.
Status UnmountFuse(const std::string& path);

// Has the kernel send everything it holds for the FUSE file system mounted at `path`. Whether that
// has arrived on return depends on the kernel's version.
Status SyncMount(const std::string& path);

// Cuts the kernel off from the FUSE daemon behind `path`: whoever uses the mount gets errors from
// now on, what was not synced is lost, and the daemon's loop ends. The mount leaves the mount
// table. For a mount that is busy when its daemon has to end.
Status AbortMount(const std::string& path);

}  // namespace siltfs
