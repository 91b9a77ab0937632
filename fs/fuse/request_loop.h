// Reads requests from the kernel and answers them on several threads.
//
// One thread at a time, the *leader*, reads requests. It answers quick requests itself and goes on
// reading. So one thread serves a sequential program (tar, find, rm), and it is still running when
// the next request comes. Waking another thread each time, as in loops where all threads wait for
// requests side by side, takes longer than most answers. The leader hands the lead over before a
// request that may take long, and when other requests wait to be read.
//
// No request waits behind one that turns out to take long: while the leader answers, another thread
// checks every few milliseconds whether the leader still answers the same request. If so, it takes
// the lead.
#pragma once

#include <chrono>

#include "fs/fuse/fuse_api.h"

namespace siltfs::fuse {

// Returns when the file system is unmounted (0) or the connection has failed (-errno), after every
// request that was read is answered. `patience`: how long the leader may answer one request.
int ServeRequests(fuse_session* session, unsigned threads,
                  std::chrono::nanoseconds patience = std::chrono::milliseconds(4));

}  // namespace siltfs::fuse
