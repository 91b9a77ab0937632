#include "store/bucket/segment_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTOBJ\n";
constexpr uint32_t kChecksumBytes = 8;
constexpr size_t kTailChecksumOffset = kObjectTailBytes - kChecksumBytes;

uint64_t BlockSum(const ContentId& id, uint32_t block, ByteView bytes) {
  const std::string place = Encoder().U32(id.segment).U64(id.generation).U32(block).Take();
  return Checksum(bytes, Checksum(AsBytes(place)));
}

Status BadTrailer(std::string_view what) {
  return Status(StatusCode::kCorruption, fmt::format("the trailer of the object {}", what));
}

}  // namespace

uint32_t BlockCount(uint32_t segment_bytes) {
  return static_cast<uint32_t>((uint64_t{segment_bytes} + kObjectBlockBytes - 1) /
                               kObjectBlockBytes);
}

uint32_t BlockBytes(uint32_t segment_bytes, uint32_t block) {
  const uint64_t begin = uint64_t{block} * kObjectBlockBytes;
  return begin >= segment_bytes
             ? 0
             : static_cast<uint32_t>(std::min<uint64_t>(kObjectBlockBytes, segment_bytes - begin));
}

uint64_t TrailerBytes(uint32_t segment_bytes) {
  return uint64_t{BlockCount(segment_bytes)} * kChecksumBytes + kObjectTailBytes;
}

uint64_t ObjectBytes(uint32_t segment_bytes) { return segment_bytes + TrailerBytes(segment_bytes); }

std::optional<uint32_t> SegmentBytes(uint64_t object_bytes) {
  if (object_bytes < kObjectTailBytes || object_bytes > ObjectBytes(kMostObjectSegmentBytes))
    return std::nullopt;
  const uint64_t with_table = object_bytes - kObjectTailBytes;
  const uint64_t step = kObjectBlockBytes + kChecksumBytes;
  const uint64_t blocks = (with_table + step - 1) / step;
  if (blocks * kChecksumBytes > with_table) return std::nullopt;
  const auto size = static_cast<uint32_t>(with_table - blocks * kChecksumBytes);
  if (ObjectBytes(size) != object_bytes) return std::nullopt;
  return size;
}

Result<BlockChecksums> BlockChecksums::Compute(const SegmentContent& content,
                                               const ReadableFile& file) {
  BlockChecksums checksums;
  checksums.content_ = content;
  Bytes buffer(std::min(content.size, kObjectBlockBytes));
  const uint32_t blocks = BlockCount(content.size);
  checksums.sums_.reserve(blocks);
  for (uint32_t block = 0; block < blocks; ++block) {
    const MutableByteView bytes = MutableByteView(buffer).first(BlockBytes(content.size, block));
    SILTFS_RETURN_IF_ERROR(ReadExactly(file, uint64_t{block} * kObjectBlockBytes, bytes));
    checksums.sums_.push_back(BlockSum(content.id, block, bytes));
  }
  return checksums;
}

std::string BlockChecksums::EncodeTrailer() const {
  Encoder table;
  for (const uint64_t sum : sums_) table.U64(sum);
  Encoder tail;
  tail.Raw(kMagic).U32(kObjectFormatVersion).U32(kObjectBlockBytes);
  tail.U32(content_.id.segment).U32(content_.size).U64(content_.id.generation);
  tail.U64(Checksum(table.view())).Zeros(kTailChecksumOffset - tail.size());
  const uint64_t sum = Checksum(tail.view());
  return table.Take() + tail.Take() + Encoder().U64(sum).Take();
}

Result<BlockChecksums> BlockChecksums::Decode(const SegmentContent& content, ByteView trailer) {
  if (trailer.size() != TrailerBytes(content.size)) return BadTrailer("has the wrong length");
  const ByteView table = trailer.first(trailer.size() - kObjectTailBytes);
  const ByteView tail = trailer.last(kObjectTailBytes);
  Decoder in(tail);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return BadTrailer("has no magic number");
  const uint32_t version = in.U32();
  Decoder sum(tail.subspan(kTailChecksumOffset));
  if (sum.U64() != Checksum(tail.first(kTailChecksumOffset)))
    return BadTrailer("does not match its checksum");
  if (version > kObjectFormatVersion) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("the object has format {}; this siltfs knows {}", version,
                              kObjectFormatVersion));
  }
  if (version != kObjectFormatVersion) return BadTrailer("has an unknown version");
  if (in.U32() != kObjectBlockBytes) return BadTrailer("has another size of blocks");
  if (in.U32() != content.id.segment || in.U32() != content.size ||
      in.U64() != content.id.generation) {
    return BadTrailer("belongs to another segment");
  }
  if (in.U64() != Checksum(table)) return BadTrailer("has a damaged table");
  BlockChecksums checksums;
  checksums.content_ = content;
  Decoder sums(table);
  while (sums.remaining() > 0) checksums.sums_.push_back(sums.U64());
  return checksums;
}

bool BlockChecksums::Matches(uint32_t block, ByteView bytes) const {
  return block < sums_.size() && bytes.size() == BlockBytes(content_.size, block) &&
         BlockSum(content_.id, block, bytes) == sums_[block];
}

ObjectImage::ObjectImage(const SegmentContent& content, const ReadableFile& segment,
                         std::string trailer)
    : content_(content), segment_(segment), trailer_(std::move(trailer)) {}

Result<size_t> ObjectImage::Read(uint64_t offset, MutableByteView out) const {
  size_t done = 0;
  if (offset < content_.size) {
    done = std::min<uint64_t>(out.size(), content_.size - offset);
    SILTFS_RETURN_IF_ERROR(ReadExactly(segment_, offset, out.first(done)));
  }
  const uint64_t at = offset + done;
  if (done == out.size() || at >= content_.size + trailer_.size()) return done;
  const uint64_t in_trailer = at - content_.size;
  const size_t size = std::min<uint64_t>(out.size() - done, trailer_.size() - in_trailer);
  std::memcpy(out.data() + done, trailer_.data() + in_trailer, size);
  return done + size;
}

}  // namespace siltfs
