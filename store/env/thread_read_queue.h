// A ReadQueue for systems that refuse io_uring: each thread waits for one read. For this folder
// only; callers use Env::NewReadQueue.
#pragma once

#include <memory>

#include "store/env/env.h"

namespace siltfs {

// Threads start when a call of ReadAll first needs them: at most `depth`, including the caller's
// thread. If the system grants fewer threads, the existing threads make all reads.
std::unique_ptr<ReadQueue> NewThreadReadQueue(unsigned depth);

}  // namespace siltfs
