// The object of a segment's content (docs/format.md#objects-of-segments): the bytes of the segment,
// a table with a checksum for each block of 256 KiB, and a fixed tail. The table and the tail are
// the object's trailer. With the trailer, a reader verifies any range that is aligned to blocks,
// without trust in the service or the network: each checksum depends on the segment, the
// generation and the block's number, so it also detects the right bytes of a wrong place.
//
// Thread-safety: pure functions, and values. The checksums guard against damage, not against an
// adversary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/bucket/segment_content.h"
#include "store/env/env.h"

namespace siltfs {

inline constexpr uint32_t kObjectBlockBytes = 256U << 10;
inline constexpr uint32_t kObjectTailBytes = 64;
inline constexpr uint32_t kObjectFormatVersion = 1;
// No larger segment can be put. (A segment has about 32 MiB.)
inline constexpr uint32_t kMostObjectSegmentBytes = 1U << 30;

uint32_t BlockCount(uint32_t segment_bytes);
// The bytes of this block that belong to the segment: fewer than kObjectBlockBytes for the last.
uint32_t BlockBytes(uint32_t segment_bytes, uint32_t block);
uint64_t TrailerBytes(uint32_t segment_bytes);
uint64_t ObjectBytes(uint32_t segment_bytes);
// The size of the segment in an object of this size; empty if no object has this size.
std::optional<uint32_t> SegmentBytes(uint64_t object_bytes);

class BlockChecksums {
 public:
  // Reads the whole segment, block by block. kCorruption if the file is shorter than the content.
  static Result<BlockChecksums> Compute(const SegmentContent& content, const ReadableFile& file);
  // Parses a trailer. kCorruption if it is damaged or belongs to another content; kNeedsNewer.
  static Result<BlockChecksums> Decode(const SegmentContent& content, ByteView trailer);

  std::string EncodeTrailer() const;
  const SegmentContent& content() const { return content_; }
  // Whether these are the bytes of this block.
  bool Matches(uint32_t block, ByteView bytes) const;
  // Whether both are of the same content with the same bytes.
  bool operator==(const BlockChecksums&) const = default;

 private:
  SegmentContent content_;
  std::vector<uint64_t> sums_;
};

// The object as a file: the segment's file with the trailer behind it. Both must outlive it.
class ObjectImage final : public ReadableFile {
 public:
  ObjectImage(const SegmentContent& content, const ReadableFile& segment, std::string trailer);

  const std::string& path() const override { return segment_.path(); }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  Result<uint64_t> Size() const override { return ObjectBytes(content_.size); }

 private:
  const SegmentContent content_;
  const ReadableFile& segment_;
  const std::string trailer_;
};

}  // namespace siltfs
