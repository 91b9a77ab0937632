// Memory that two processes share. One process makes it and passes its descriptor to the other one
// (local_socket.h). Its size cannot change any more, so an access never fails.
//
// The other process can write to the memory at any time. So copy bytes out of it before you check
// them, and use only the copy afterwards.
//
// Thread-safety: as for plain memory. Ownership: a SharedMemory unmaps its memory; it does not keep
// the descriptor of an adopted one. Errors: Status with the cause.
#pragma once

#include <cstddef>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class SharedMemory {
 public:
  // Makes zeroed memory of this size, which stays constant.
  static Result<SharedMemory> Make(size_t bytes);
  // Maps memory that another process has made. kInvalidArgument unless its size is constant and in
  // this range.
  static Result<SharedMemory> Adopt(const Descriptor& fd, size_t least, size_t most);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { Unmap(); }

  MutableByteView bytes() const { return {address_, size_}; }
  // Of a SharedMemory from Make; pass it to the other process.
  const Descriptor& descriptor() const { return fd_; }

 private:
  SharedMemory(uint8_t* address, size_t size, Descriptor fd)
      : address_(address), size_(size), fd_(std::move(fd)) {}
  void Unmap();

  uint8_t* address_ = nullptr;
  size_t size_ = 0;
  Descriptor fd_;
};

}  // namespace siltfs
