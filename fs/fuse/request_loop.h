// Reads requests from the kernel and has them answered, on several threads.
//
// One thread at a time reads, the *leader*. What is answered quickly it answers itself, and goes on
// reading. So a program that asks for one thing after the other (tar, find, rm) is served by one
// thread, which is still running when the next request comes; to wake another one each time, as
// where all threads wait for requests side by side, takes longer than most answers. Before a
// request that may take long, and where others wait to be read, the leader hands the lead over.
//
// No request waits behind one that turns out to take long: while the leader answers, another thread
// looks every few milliseconds whether it still answers the same one, and if so takes the lead.
#pragma once

#include <chrono>

#include "fs/fuse/fuse_api.h"

namespace siltfs::fuse {

// Returns when the file system is unmounted (0) or the connection has failed (-errno), and every
// request that was read is answered. `patience`: how long the leader may answer one request.
int ServeRequests(fuse_session* session, unsigned threads,
                  std::chrono::nanoseconds patience = std::chrono::milliseconds(4));

}  // namespace siltfs::fuse
