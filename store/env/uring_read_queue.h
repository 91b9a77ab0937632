// A ReadQueue on io_uring: one thread hands the kernel many reads and takes their outcomes as they
// come. For this folder only; Env::NewReadQueue is the way to it.
//
// Nothing is registered with the ring (neither buffers nor files), so no memory of the caller's is
// pinned beyond a read's own time.
#pragma once

#include <memory>

#include "store/env/env.h"

namespace siltfs {

// Fails where the machine refuses a ring: no io_uring, not allowed, no memory for it.
Result<std::unique_ptr<ReadQueue>> NewUringReadQueue(unsigned depth);

}  // namespace siltfs
