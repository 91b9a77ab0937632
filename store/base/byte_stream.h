// A sequence of bytes, such as a pipe or a socket, that is written or read once.
//
// Thread-safety: one thread at a time. Errors: those of the implementation.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all bytes, and may wait until the reader takes them.
  virtual Status Write(ByteView bytes) = 0;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Waits for at least one byte, and returns the number of bytes read. 0: the sequence has ended.
  virtual Result<size_t> Read(MutableByteView out) = 0;
  // How long later reads wait for a byte before they fail with kInterrupted; nullopt, as at first:
  // without limit. A source whose reads never wait for another process ignores it.
  virtual void SetPatience(std::optional<std::chrono::nanoseconds> /*patience*/) {}
};

}  // namespace siltfs
