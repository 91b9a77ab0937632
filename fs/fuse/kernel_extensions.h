// Reads requests before libfuse parses them. So requests and flags that libfuse does not know, or
// does not pass on, still reach the handlers (kernel_messages.h).
//
// Requests come from reads of /dev/fuse or from rings (ring_transport.h). The reply to a request of
// a ring is passed to its ring, which libfuse does not know.
//
// A thread of the request loop or of the rings answers a request before it reads another one. So
// the notes about a request are thread-local. Thread-safety: from any thread.
#pragma once

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/kernel_messages.h"

namespace siltfs::fuse {

// From now on the session reads requests from this descriptor of /dev/fuse, which it then owns.
// Call it before serving. False if libfuse is out of memory.
bool ListenToKernel(fuse_session* session, int device);

// Lets libfuse answer a request of a ring. `reply_area`: see CurrentReplyArea.
void AnswerRingRequest(fuse_session* session, MutableByteView message, MutableByteView reply_area);

// Notes about the request that this thread is answering.
const RequestNotes& CurrentRequest();
// If not empty: a reply body that begins there is not copied. It may overlap the request's data.
MutableByteView CurrentReplyArea();

}  // namespace siltfs::fuse
