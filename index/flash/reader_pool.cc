#include "index/flash/reader_pool.h"

#include <utility>

namespace siltfs {
namespace {

// Idle readers kept for concurrent calls.
constexpr size_t kMostIdleReaders = 4;

}  // namespace

// One half of the pages is being read while lookups examine the other half.
size_t ReaderPool::Bytes() const { return size_t{2} * depth_() * kPageSize; }

Result<LookupReader> ReaderPool::Take() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      LookupReader reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
  }
  const unsigned depth = depth_();
  SILTFS_ASSIGN_OR_RETURN(auto queue, env_.NewReadQueue(depth));
  return LookupReader{.queue = std::move(queue),
                      .pages = AlignedBuffer(size_t{2} * depth * kPageSize)};
}

void ReaderPool::Return(LookupReader reader) {
  MutexLock lock(mutex_);
  if (reader.pages.size() != Bytes() || idle_.size() >= kMostIdleReaders) return;
  idle_.push_back(std::move(reader));
}

void ReaderPool::Clear() {
  MutexLock lock(mutex_);
  idle_.clear();
}

uint64_t ReaderPool::most_memory_bytes() const { return kMostIdleReaders * Bytes(); }

uint64_t ReaderPool::memory_bytes() const {
  MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const LookupReader& reader : idle_) bytes += reader.pages.size();
  return bytes;
}

}  // namespace siltfs
