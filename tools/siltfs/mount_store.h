// Mounts a store for `siltfs mount` and mount.siltfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/siltfs/command.h"
#include "tools/siltfs/store_bucket_options.h"

namespace siltfs {

// The parts of a mount that run in processes with different rights (--part).
enum class MountPart : uint8_t {
  kAll,
  kServe,   // the daemon, in the foreground; another process mounts
  kMount,   // makes the mount of that daemon
  kRemove,  // removes what remains of the mounts of a daemon that has ended
};

struct MountRequest {
  std::string store;  // a directory, or a tag (store_search.h)
  std::string mountpoint;
  std::vector<std::string> options;  // the argument of each -o
  bool foreground = false;
  bool quiet = false;       // show no progress
  bool check_only = false;  // all checks, no mount
  // A store that is named by a tag may be mounted on the mountpoint already.
  bool is_helper = false;
  MountPart part = MountPart::kAll;
  // For a bucket in `store`: the directory in which the store is made again if it is not there.
  BucketArguments bucket;
  std::optional<std::string> directory;
  bool take_over = false;
};

// Mounts the store. In the foreground it returns when the store is unmounted and closed. In the
// background it makes the daemon's process, and so returns twice: in the launcher when the mount
// answers or has failed, and in the daemon when the daemon's work has ended. A part of a mount
// returns when its work has ended.
ExitCode MountStore(const MountRequest& request, Surroundings& surroundings);

}  // namespace siltfs
