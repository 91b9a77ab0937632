// A ReadQueue for machines that refuse io_uring: threads that each wait for one read. For this
// folder only; Env::NewReadQueue is the way to it.
#pragma once

#include <memory>

#include "store/env/env.h"

namespace siltfs {

// Threads are started when a batch first has work for them, `depth` at most, the caller's among
// them; where the machine grants fewer, fewer do the work.
std::unique_ptr<ReadQueue> NewThreadReadQueue(unsigned depth);

}  // namespace siltfs
