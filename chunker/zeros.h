// Runs of zeros become holes, never chunks.
#pragma once

#include "store/base/bytes.h"

namespace siltfs {

// Whether every byte is 0; true for no bytes. Returns at once for most other data.
bool IsAllZero(ByteView bytes);

}  // namespace siltfs
