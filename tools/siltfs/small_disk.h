// Messages for a disk that is too small.
//
// Thread-safety: from any thread.
#pragma once

#include <optional>
#include <string>

#include "store/env/env.h"

namespace siltfs {

// kNoSpace if the disk of `store`, which need not exist yet, is below SpaceReserve::kLeastDisk.
Status CheckDiskSize(Env& env, const std::string& store);

// A warning if the disk of `store` is below SpaceReserve::kLeastUsefulDisk.
std::optional<std::string> WarnOfSmallDisk(Env& env, const std::string& store);

}  // namespace siltfs
