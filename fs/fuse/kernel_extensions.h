// Reads requests before libfuse does, so that what libfuse does not know or does not pass on still
// reaches the handlers (kernel_messages.h).
//
// A thread of the request loop reads a request and answers it before it reads another one: the
// notes about it are the thread's own. Thread-safety: as said; from any thread.
#pragma once

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/kernel_messages.h"

namespace siltfs::fuse {

// To be called between mounting and serving. False if libfuse has no memory for it.
bool ListenToKernel(fuse_session* session);

// About the request that this thread is answering.
const RequestNotes& CurrentRequest();

}  // namespace siltfs::fuse
