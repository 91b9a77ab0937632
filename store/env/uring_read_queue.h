// A ReadQueue on io_uring: one thread submits many reads and reaps their completions. For this
// folder only; callers use Env::NewReadQueue.
//
// Nothing is registered with the ring (neither buffers nor files), so the caller's memory is pinned
// only during a read.
#pragma once

#include <memory>

#include "store/env/env.h"

namespace siltfs {

// Fails if the system refuses a ring: the system has no io_uring, does not permit it, or lacks
// memory for the ring.
Result<std::unique_ptr<ReadQueue>> NewUringReadQueue(unsigned depth);

}  // namespace siltfs
