// A reader of one content of a segment (bucket_segment_store.h).
//
// Reads come from the local cache, otherwise from the bucket, in blocks. While the blocks are read
// one after another, the reader fetches more and more of the following ones in the background, up
// to the rest of the segment.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "store/bucket/bucket_core.h"
#include "store/env/env.h"

namespace siltfs {

class BucketReader final : public ReadableFile {
 public:
  // `content` was returned by AddReader, whose effect the destructor ends.
  BucketReader(std::shared_ptr<BucketCore> core, const SegmentContent& content);
  ~BucketReader() override;

  const std::string& path() const override { return path_; }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  void BeginRead(uint64_t offset, uint64_t size) const override;
  Result<uint64_t> Size() const override { return uint64_t{content_.size}; }

 private:
  // Reads at least one byte.
  Result<size_t> ReadSome(uint64_t offset, MutableByteView out) const;
  // Notes that the block is read. Returns how many blocks were read one after another before it.
  uint32_t Follow(uint32_t block) const;
  void ReadAhead(uint32_t block, uint32_t streak) const;

  const std::shared_ptr<BucketCore> core_;
  const SegmentContent content_;
  const std::string path_;
  // Hints: threads that read at the same time may disturb them.
  mutable std::atomic<uint32_t> last_block_;
  mutable std::atomic<uint32_t> streak_ = 0;
  mutable std::atomic<uint32_t> ahead_ = 0;  // the end of the blocks that Prefetch was called for
};

}  // namespace siltfs
