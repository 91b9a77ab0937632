// Waits in a thread for a client to end its side of a stream, which asks the daemon to stop.
//
// Thread-safety: requested() from any thread. Ownership: borrows the stream. While the object
// exists, nothing else may read from the stream; the destructor ends reading.
#pragma once

#include <atomic>
#include <thread>

#include "store/env/local_socket.h"

namespace siltfs {

class StopWatch {
 public:
  explicit StopWatch(LocalStream& stream) : stream_(stream), thread_([this] { Watch(); }) {}
  ~StopWatch() {
    ended_ = true;
    stream_.FinishReading();
    thread_.join();
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  bool requested() const { return requested_; }

 private:
  static constexpr size_t kMaxLineBytes = 4096;

  void Watch() {
    while (!ended_) {
      const auto line = stream_.ReadLine(kMaxLineBytes);
      if (line.status().Is(StatusCode::kInterrupted)) continue;  // the client is only silent
      requested_ = true;  // a client that sends more is not understood, and is stopped, too
      return;
    }
  }

  LocalStream& stream_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> requested_ = false;
  std::thread thread_;
};

}  // namespace siltfs
