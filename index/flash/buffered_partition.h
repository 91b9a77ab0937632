// A partition with a buffer in memory and an immutable version on flash: what its readers do, and
// how the buffer is filled. An engine derives from it and writes versions.
//
// `Buffer` is a container of entries, such as EntryTable. `Version` is a FlashVersion that has
// filter_bytes(), its part of FlashContext::filter_bytes.
//
// Do not use it for a partition whose structure in memory changes without a new version.
//
// Thread-safety, ownership, errors: flash_partition.h.
#pragma once

#include <memory>
#include <utility>

#include "index/flash/flash_partition.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

template <typename Buffer, typename Version>
class BufferedPartition : public FlashPartition {
 public:
  std::shared_ptr<const FlashVersion> Begin(LookupState& state) const override {
    ReaderLock lock(mutex_);
    state.found = buffer_.Find(state.hash);
    return state.found ? nullptr : version_;
  }
  PartitionSnapshot TakeSnapshot() const override {
    ReaderLock lock(mutex_);
    return {.buffered = buffer_.entries(), .version = version_};
  }
  uint64_t buffered_entries() const override {
    ReaderLock lock(mutex_);
    return buffer_.size();
  }

  bool Insert(const FlashEntry& entry) override {
    WriterLock lock(mutex_);
    const bool inserted = buffer_.Insert(entry);
    buffer_share_.Set(buffer_.memory_bytes());
    return inserted;
  }
  void InsertReplayed(const FlashEntry& entry) override {
    WriterLock lock(mutex_);
    buffer_.InsertAnyway(entry);
    buffer_share_.Set(buffer_.memory_bytes());
  }

 protected:
  // `version` must not be null.
  BufferedPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix, Buffer buffer,
                    std::shared_ptr<const Version> version)
      : FlashPartition(context, id, prefix),
        buffer_share_(context.buffer_bytes),
        filter_share_(context.filter_bytes),
        buffer_(std::move(buffer)),
        version_(std::move(version)) {}

  std::shared_ptr<const Version> version() const {
    ReaderLock lock(mutex_);
    return version_;
  }
  Buffer CopyOfBuffer() const {
    ReaderLock lock(mutex_);
    return buffer_;
  }
  // Replaces the version, which must not be null; also empties the buffer if `buffer_is_written`.
  void Install(std::shared_ptr<const Version> version, bool buffer_is_written) {
    filter_share_.Set(version->filter_bytes());
    if (buffer_is_written) buffer_share_.Set(0);
    WriterLock lock(mutex_);
    version_.swap(version);
    if (buffer_is_written) buffer_.Clear();
  }

  MemoryShare buffer_share_;
  MemoryShare filter_share_;

  mutable SharedMutex mutex_;
  Buffer buffer_ SILTFS_GUARDED_BY(mutex_);
  std::shared_ptr<const Version> version_ SILTFS_GUARDED_BY(mutex_);  // never null
};

}  // namespace siltfs
