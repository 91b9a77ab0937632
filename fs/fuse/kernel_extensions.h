// Reads requests before libfuse parses them. So requests and flags that libfuse does not know, or
// does not pass on, still reach the handlers (kernel_messages.h).
//
// A thread of the request loop answers a request before it reads another one. So the notes about a
// request are thread-local. Thread-safety: from any thread.
#pragma once

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/kernel_messages.h"

namespace siltfs::fuse {

// Call it between mounting and serving. False if libfuse is out of memory.
bool ListenToKernel(fuse_session* session);

// Notes about the request that this thread is answering.
const RequestNotes& CurrentRequest();

}  // namespace siltfs::fuse
