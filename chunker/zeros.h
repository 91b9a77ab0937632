// Runs of zeros become holes, never chunks.
#pragma once

#include "store/base/bytes.h"

namespace siltfs {

// Whether every byte is 0; true for an empty view. For most other data the first bytes decide.
bool IsAllZero(ByteView bytes);

}  // namespace siltfs
