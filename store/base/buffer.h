// A byte buffer of a size known beforehand, and a pool of such buffers. Unlike Bytes, a Buffer is
// not zeroed; the caller fills it. Without the pool, each large allocation is mapped and faulted in
// page by page.
//
// Thread-safety: a Buffer is a plain value; a BufferPool may be used from any thread.
// Ownership: a Buffer returns its memory to its pool. The pool's memory is freed when the
// BufferPool and all its Buffers are gone. Units: bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "store/base/bytes.h"

namespace siltfs {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  // Allocates memory that belongs to no pool. It is not zeroed.
  explicit Buffer(size_t size);
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~Buffer();

  uint8_t* data() { return memory_.get(); }
  const uint8_t* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  uint8_t* begin() { return data(); }
  uint8_t* end() { return data() + size_; }
  const uint8_t* begin() const { return data(); }
  const uint8_t* end() const { return data() + size_; }
  // `size` must be at most capacity(). Added bytes are not zeroed.
  void SetSize(size_t size);

 private:
  friend class BufferPool;
  struct Idle;

  void Swap(Buffer& other) noexcept;

  std::unique_ptr<uint8_t[]> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
  std::shared_ptr<Idle> home_;  // null: the memory belongs to no pool
};

// Keeps at most `idle_bytes` of returned memory. Buffers of kStep to kMaxPooled bytes use this
// memory, and their capacity is a multiple of kStep. All other buffers are allocated and freed.
class BufferPool {
 public:
  static constexpr size_t kStep = 32u << 10;
  static constexpr size_t kMaxPooled = 2u << 20;

  explicit BufferPool(size_t idle_bytes);

  Buffer Take(size_t size);
  size_t idle_bytes() const;

 private:
  std::shared_ptr<Buffer::Idle> idle_;
};

}  // namespace siltfs
