// The whole program behind main().
#pragma once

#include <span>
#include <string>

#include "tools/siltfs/command.h"

namespace siltfs {

// Runs the program and returns its exit code. Throws nothing. `arguments` are those of main(). The
// last part of arguments[0] decides whether the program is siltfs itself or one of its links
// (mkfs.siltfs, mount.siltfs, umount.siltfs, fsck.siltfs).
int RunSiltfs(std::span<const std::string> arguments, Surroundings& surroundings);

}  // namespace siltfs
