// What a caller of the file system sees when the core says why something failed.
#pragma once

#include "store/base/status.h"

namespace siltfs {

// A positive errno; 0 for kOk.
int ErrnoOf(StatusCode code);

}  // namespace siltfs
