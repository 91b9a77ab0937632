// Runs of zeros become holes, never chunks.
#pragma once

#include "store/base/bytes.h"

namespace siltfs {

// Every byte is 0; also of no bytes at all. Returns at once for most data that is not.
bool IsAllZero(ByteView bytes);

}  // namespace siltfs
