// A file descriptor that closes itself, and the retry of interrupted system calls. For this folder
// only.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace siltfs {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = other.Release();
    }
    return *this;
  }
  ~Descriptor() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  // Closes; errors of closing are dropped.
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// Repeats the call while a signal interrupts it; returns its last result.
template <typename Call>
auto RetryInterrupted(Call call) {
  while (true) {
    auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace siltfs
