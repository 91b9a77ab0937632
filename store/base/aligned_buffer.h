// Memory for direct (O_DIRECT) access: address and size are multiples of 4,096. An AlignedBuffer
// owns its bytes, which are zero at first. It is movable, but not copyable. Thread-safety: as for a
// plain array.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "store/base/bytes.h"

namespace siltfs {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  AlignedBuffer() = default;
  // Allocates at least `size` bytes.
  explicit AlignedBuffer(size_t size) : size_((size + kAlignment - 1) / kAlignment * kAlignment) {
    if (size_ == 0) return;
    bytes_.reset(static_cast<uint8_t*>(::operator new (size_, std::align_val_t{kAlignment})));
    std::memset(bytes_.get(), 0, size_);
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : size_(std::exchange(other.size_, 0)), bytes_(std::move(other.bytes_)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    bytes_ = std::move(other.bytes_);
    return *this;
  }

  size_t size() const { return size_; }
  uint8_t* data() { return bytes_.get(); }
  MutableByteView view() { return {bytes_.get(), size_}; }
  ByteView view() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const {
      ::operator delete (bytes, std::align_val_t{kAlignment});
    }
  };

  size_t size_ = 0;
  std::unique_ptr<uint8_t, Free> bytes_;
};

}  // namespace siltfs
