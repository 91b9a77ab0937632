#include "store/base/buffer.h"

#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include "store/base/thread_annotations.h"

namespace siltfs {

// Memory of destroyed buffers, by capacity in units of kStep.
struct Buffer::Idle {
  explicit Idle(size_t limit_in) : limit(limit_in) {}

  std::unique_ptr<uint8_t[]> Take(size_t capacity) {
    MutexLock lock(mutex);
    auto& rack = racks[capacity / BufferPool::kStep];
    if (rack.empty()) return nullptr;
    std::unique_ptr<uint8_t[]> memory = std::move(rack.back());
    rack.pop_back();
    bytes -= capacity;
    return memory;
  }
  void GiveBack(std::unique_ptr<uint8_t[]> memory, size_t capacity) {
    MutexLock lock(mutex);
    if (bytes + capacity > limit) return;
    racks[capacity / BufferPool::kStep].push_back(std::move(memory));
    bytes += capacity;
  }

  const size_t limit;
  Mutex mutex;
  std::array<std::vector<std::unique_ptr<uint8_t[]>>,
             BufferPool::kMaxPooled / BufferPool::kStep + 1>
      racks SILTFS_GUARDED_BY(mutex);
  size_t bytes SILTFS_GUARDED_BY(mutex) = 0;
};

Buffer::Buffer(size_t size) : memory_(new uint8_t[size]), size_(size), capacity_(size) {}

Buffer::~Buffer() {
  if (home_ && memory_) home_->GiveBack(std::move(memory_), capacity_);
}

void Buffer::SetSize(size_t size) {
  assert(size <= capacity_);
  size_ = size;
}

void Buffer::Swap(Buffer& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  std::swap(home_, other.home_);
}

BufferPool::BufferPool(size_t idle_bytes) : idle_(std::make_shared<Buffer::Idle>(idle_bytes)) {}

Buffer BufferPool::Take(size_t size) {
  if (size < kStep || size > kMaxPooled) return Buffer(size);
  Buffer buffer;
  buffer.size_ = size;
  buffer.capacity_ = (size + kStep - 1) / kStep * kStep;
  buffer.memory_ = idle_->Take(buffer.capacity_);
  if (!buffer.memory_) buffer.memory_.reset(new uint8_t[buffer.capacity_]);
  buffer.home_ = idle_;
  return buffer;
}

size_t BufferPool::idle_bytes() const {
  MutexLock lock(idle_->mutex);
  return idle_->bytes;
}

}  // namespace siltfs
