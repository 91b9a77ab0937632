// Runs of zeros become holes, never chunks.
#pragma once

#include "store/base/bytes.h"

namespace siltfs {

// Whether every byte is 0; true for an empty view. The call is fast for most other data, because
// one of the first 16 bytes is usually not 0.
bool IsAllZero(ByteView bytes);

}  // namespace siltfs
