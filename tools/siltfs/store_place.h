// Finding stores by what people type: the store's directory, or where it is mounted.
#pragma once

#include <optional>
#include <string>

#include "store/base/result.h"

namespace siltfs {

struct MountedStore {
  std::string store;       // absolute path, as the mount table has it
  std::string mountpoint;  // absolute path
};

// The siltfs mount on this directory; empty if there is none, or something else is mounted over it.
// A mount whose daemon has crashed counts.
Result<std::optional<MountedStore>> FindMount(const std::string& path);

// The directory of the store mounted on `path`, or else `path` itself, made absolute.
Result<std::string> StoreAt(const std::string& path);

}  // namespace siltfs
