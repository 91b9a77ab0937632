// Messages for a disk that is too small.
//
// Thread-safety: from any thread.
#pragma once

#include <optional>
#include <string>

#include "store/env/env.h"

namespace siltfs {

// Returns kNoSpace if the disk of `store` is smaller than SpaceReserve::kLeastDisk. `store` need
// not exist yet.
Status CheckDiskSize(Env& env, const std::string& store);

// Returns a warning if the disk of `store` is smaller than SpaceReserve::kLeastUsefulDisk.
std::optional<std::string> WarnOfSmallDisk(Env& env, const std::string& store);

}  // namespace siltfs
