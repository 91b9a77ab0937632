// What there is to say of a disk that is too small to be of much use.
//
// Thread-safety: from any thread.
#pragma once

#include <optional>
#include <string>

#include "store/env/env.h"

namespace siltfs {

// kNoSpace if the disk of `store`, which need not be there yet, is below SpaceReserve::kLeastDisk.
Status CheckDiskSize(Env& env, const std::string& store);

// A sentence for a person, if the disk that `store` is on is below SpaceReserve::kLeastUsefulDisk.
std::optional<std::string> WarnOfSmallDisk(Env& env, const std::string& store);

}  // namespace siltfs
