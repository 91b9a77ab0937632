// Reads requests from the kernel and answers them on several threads.
//
// One thread at a time, the *leader*, reads requests. It answers quick requests itself and then
// reads the next one. So one thread serves a sequential program (tar, find, rm), and this thread is
// still running when the next request comes. If all threads waited for requests, each request would
// wake another thread, which takes longer than answering most requests. The leader gives the lead
// to another thread before it answers a request that may take long, and when other requests wait to
// be read.
//
// A quick request may turn out to take long. So while the leader answers, another thread checks
// every few milliseconds whether the leader still answers the same request. If so, that thread
// takes the lead and reads the requests that wait.
#pragma once

#include <chrono>
#include <functional>

#include "fs/fuse/fuse_api.h"

namespace siltfs::fuse {

class StopEvent;

struct RequestLoopOptions {
  unsigned threads = 1;
  // How long the leader may take to answer one request before another thread takes the lead.
  std::chrono::nanoseconds patience = std::chrono::milliseconds(4);
  // Whether most requests arrive elsewhere, through rings. /dev/fuse then brings little more than
  // FORGET messages, which no program waits for. So the leader pauses before it reads, and answers
  // many of them at once. Otherwise each would wake it.
  std::function<bool()> seldom_used = [] { return false; };
  static constexpr std::chrono::milliseconds kPause{2};
  // If not null, its Set ends the loop. The descriptor of the session must then be non-blocking: a
  // process that shares it may read the request that this loop is about to read.
  const StopEvent* stop = nullptr;
};

// Returns 0 when the file system is unmounted or the loop was stopped, or -errno when the
// connection has failed. On return, every request that was read has been answered.
int ServeRequests(fuse_session* session, const RequestLoopOptions& options);

}  // namespace siltfs::fuse
