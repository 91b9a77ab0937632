// Maps the core's status codes to the errno that a program sees.
#pragma once

#include "store/base/status.h"

namespace siltfs {

// A positive errno; 0 for kOk.
int ErrnoOf(StatusCode code);

}  // namespace siltfs
