// Runs of zeros become holes, never chunks.
#pragma once

#include "store/base/bytes.h"

namespace siltfs {

// Whether every byte is 0; true for an empty view. In most other data one of the first bytes shows
// that the answer is no.
bool IsAllZero(ByteView bytes);

}  // namespace siltfs
