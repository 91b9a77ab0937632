#include "store/segment/block_io.h"

#include <algorithm>
#include <utility>

#include "store/segment/delta_payload.h"

namespace siltfs {
namespace {

// The size of the first read of a head; the chunk table of a usual block fits in it.
constexpr size_t kHeadFirstRead = 4096;

// Extends `bytes`, which begins at `offset` of the file, to `size` bytes or the end of the file.
Status Extend(const ReadableFile& file, uint64_t offset, size_t size, Bytes& bytes) {
  size_t have = bytes.size();
  if (have >= size) return Status::Ok();
  bytes.resize(size);
  SILTFS_ASSIGN_OR_RETURN(size_t got,
                          file.Read(offset + have, MutableByteView(bytes).subspan(have)));
  bytes.resize(have + got);
  return Status::Ok();
}

// Extends `bytes` to the whole head, and decodes it.
Result<BlockHead> DecodeHeadFrom(const ReadableFile& file, const SegmentIdentity& identity,
                                 uint64_t offset, Bytes& bytes) {
  SILTFS_ASSIGN_OR_RETURN(uint32_t size, BlockHeadSize(bytes));
  SILTFS_RETURN_IF_ERROR(Extend(file, offset, size, bytes));
  return DecodeBlockHead(ByteView(bytes).first(std::min<size_t>(size, bytes.size())), identity);
}

Result<BlockHead> ReadHead(const ReadableFile& file, const SegmentIdentity& identity,
                           uint64_t offset) {
  Bytes bytes;
  SILTFS_RETURN_IF_ERROR(Extend(file, offset, kHeadFirstRead, bytes));
  return DecodeHeadFrom(file, identity, offset, bytes);
}

Result<Bytes> ReadPayload(const ReadableFile& file, const BlockHead& head, uint64_t offset) {
  Bytes payload;
  SILTFS_RETURN_IF_ERROR(Extend(file, offset + head.head_bytes(), head.payload_bytes, payload));
  SILTFS_RETURN_IF_ERROR(CheckPayload(head, payload));
  return payload;
}

// Like Extend with Bytes, but replaces the buffer by a larger one if it is too small.
Status Extend(const ReadableFile& file, const BlockCodec& codec, uint64_t offset, size_t size,
              Buffer& bytes) {
  const size_t have = bytes.size();
  if (have >= size) return Status::Ok();
  if (size > bytes.capacity()) {
    Buffer larger = codec.TakeBuffer(size);
    std::copy(bytes.begin(), bytes.end(), larger.begin());
    bytes = std::move(larger);
  }
  bytes.SetSize(size);
  SILTFS_ASSIGN_OR_RETURN(size_t got,
                          file.Read(offset + have, MutableByteView(bytes).subspan(have)));
  bytes.SetSize(have + got);
  return Status::Ok();
}

Result<StoredBlock> ReadStoredBlock(const ReadableFile& file, const SegmentIdentity& identity,
                                    const BlockCodec& codec, uint64_t offset,
                                    size_t expected_bytes) {
  StoredBlock block;
  SILTFS_RETURN_IF_ERROR(
      Extend(file, codec, offset, std::max<size_t>(expected_bytes, kBlockHeaderSize), block.bytes));
  SILTFS_ASSIGN_OR_RETURN(uint32_t head_size, BlockHeadSize(block.bytes));
  SILTFS_RETURN_IF_ERROR(Extend(file, codec, offset, head_size, block.bytes));
  const size_t head_read = std::min<size_t>(head_size, block.bytes.size());
  SILTFS_ASSIGN_OR_RETURN(block.head,
                          DecodeBlockHead(ByteView(block.bytes).first(head_read), identity));
  SILTFS_RETURN_IF_ERROR(Extend(file, codec, offset, block.head.total_bytes(), block.bytes));
  if (block.bytes.size() > block.head.total_bytes()) block.bytes.SetSize(block.head.total_bytes());
  SILTFS_RETURN_IF_ERROR(
      CheckPayload(block.head, ByteView(block.bytes).subspan(block.head.head_bytes())));
  return block;
}

template <typename T>
Result<T> At(Result<T> result, const ReadableFile& file, uint64_t offset) {
  if (result.ok()) return result;
  return std::move(result).status().At(file.path(), offset);
}

}  // namespace

Result<BlockHead> ReadBlockHeadAt(const ReadableFile& file, const SegmentIdentity& identity,
                                  uint64_t offset) {
  return At(ReadHead(file, identity, offset), file, offset);
}

Result<Bytes> ReadPayloadAt(const ReadableFile& file, const BlockHead& head, uint64_t offset) {
  return At(ReadPayload(file, head, offset), file, offset);
}

Result<std::vector<DeltaBase>> ReadDeltaBasesAt(const ReadableFile& file, const BlockHead& head,
                                                uint64_t offset) {
  if (head.codec != BlockCodecId::kZstdDelta) return std::vector<DeltaBase>();
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, ReadPayloadAt(file, head, offset));
  SILTFS_ASSIGN_OR_RETURN(DeltaPayload parts, At(DecodeDeltaPayload(head, payload), file, offset));
  return std::move(parts.deltas);
}

Status AddBasesAt(const ReadableFile& file, const BlockHead& head, uint64_t offset,
                  SegmentFooter& footer) {
  const auto deltas = ReadDeltaBasesAt(file, head, offset);
  if (deltas.ok()) {
    footer.AddBases(*deltas);
  } else if (!deltas.status().Is(StatusCode::kCorruption)) {
    return deltas.status();
  }
  return Status::Ok();
}

Result<StoredBlock> ReadStoredBlockAt(const ReadableFile& file, const SegmentIdentity& identity,
                                      const BlockCodec& codec, uint64_t offset,
                                      size_t expected_bytes) {
  return At(ReadStoredBlock(file, identity, codec, offset, expected_bytes), file, offset);
}

}  // namespace siltfs
