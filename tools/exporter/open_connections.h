// The connections of the HTTP server. If there are more than a limit, the one whose client has had
// no answer for the longest time is ended. So clients that send nothing, or send slowly, or do not
// read, cannot keep other clients out.
//
// Thread-safety: every call from any thread. Cost: a call is linear in the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "store/base/thread_annotations.h"

namespace siltfs {

class OpenConnections {
 public:
  // `end` ends the connection with this descriptor, without closing the descriptor. It is called
  // with a lock held, before Remove has returned.
  OpenConnections(size_t most, std::function<void(int descriptor)> end)
      : most_(most), end_(std::move(end)) {}

  // Ends another connection if there are too many. If all others wait for answers, none is ended.
  void Add(const void* connection, int descriptor) SILTFS_EXCLUDES(mutex_);
  // Call it before the descriptor is closed.
  void Remove(const void* connection) SILTFS_EXCLUDES(mutex_);

  // While it exists, an answer is being made, and the connection is not ended.
  class Answering {
   public:
    Answering(OpenConnections& connections, const void* connection);
    ~Answering();
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    OpenConnections& connections_;
    const void* const connection_;
  };

 private:
  struct State {
    int descriptor = -1;
    uint64_t turn = 0;  // grows with each new connection and each answer
    bool answering = false;
    bool ended = false;
  };
  void SetAnswering(const void* connection, bool answering) SILTFS_EXCLUDES(mutex_);
  void EndOneOfTooMany() SILTFS_REQUIRES(mutex_);

  const size_t most_;
  const std::function<void(int descriptor)> end_;
  Mutex mutex_;
  std::map<const void*, State> states_ SILTFS_GUARDED_BY(mutex_);
  uint64_t turns_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
