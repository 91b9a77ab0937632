// Compresses and decompresses blocks: with zstd over all chunks of a block together, or not at all.
// Chunks may also be compressed one by one as deltas, with the bytes of a base as prefix.
//
// Thread-safety: one codec serves a whole store; any thread may make any call, and no call waits
// for another. Memory: as many compression and decompression contexts as were in use at the peak,
// and at most kIdleBufferBytes of free buffers. Ownership: the caller owns results. A codec must
// outlive the readers that use it, but not the buffers that it returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_source.h"
#include "store/segment/block.h"
#include "store/segment/delta_payload.h"

namespace siltfs {

struct Compression {
  BlockCodecId codec = BlockCodecId::kZstd;
  int level = 3;  // of zstd; ignored for kNone

  bool operator==(const Compression&) const = default;
};

// kInvalidArgument for an unknown codec or level.
Status ValidateCompression(const Compression& compression);

class BlockCodec {
 public:
  BlockCodec();
  ~BlockCodec();
  BlockCodec(const BlockCodec&) = delete;
  BlockCodec& operator=(const BlockCodec&) = delete;

  // Compresses a block if zstd makes it at least 3 % smaller; otherwise leaves it uncompressed.
  // kInvalidArgument for a block beyond the format's limits.
  Result<EncodedBlock> Encode(PlainBlock block, const Compression& compression) const;

  // Compresses a chunk with `base` as prefix, to at most `most_bytes`. Returns no bytes if the
  // delta would be larger. Neither the chunk nor the base may be empty or exceed the format's
  // limits; `level` is one of zstd.
  Result<Bytes> EncodeDelta(ByteView chunk, ByteView base, int level, size_t most_bytes) const;
  // Makes a block in which these chunks are deltas; the other chunks are compressed as by Encode.
  // `block` has the bytes of all chunks. `deltas` is ascending by position. Without deltas, or if
  // the payload would not be smaller than the uncompressed bytes, the result is that of Encode.
  Result<EncodedBlock> EncodeWithDeltas(PlainBlock block, const std::vector<DeltaFrame>& deltas,
                                        const Compression& compression) const;

  // The block with this head and a payload verified by CheckPayload. kCorruption if the payload
  // doesn't decompress to the chunks' lengths. For `bases` see SegmentReader::ReadBlock; each base
  // is held only while its deltas are inflated.
  Result<DecodedBlockPtr> Decode(BlockHead head, ByteView payload,
                                 BaseSource* bases = nullptr) const;
  // The chunk at this position, which is a delta, of a block that was decoded without `bases`. The
  // failure is that of BaseSource::ReadBase with its code, or kCorruption if the delta doesn't
  // decompress; the message names the chunk and its base. kInvalidArgument if the position has no
  // such delta.
  Result<Buffer> Inflate(const DecodedBlock& block, size_t position, BaseSource& bases) const;
  // The uncompressed bytes of such a payload without deltas. kInvalidArgument if it has deltas.
  Result<Buffer> DecodePayload(const BlockHead& head, ByteView payload) const;

  // A buffer that is not zeroed. Stored payloads and decompressed blocks both use such buffers, so
  // that they share one pool.
  Buffer TakeBuffer(size_t size) const { return buffers_.Take(size); }

 private:
  class Contexts;

  Result<Bytes> EncodeWhole(ByteView plain, const Compression& compression) const;
  Result<DecodedBlock::Chunks> DecodeDeltas(const BlockHead& head, ByteView payload,
                                            BaseSource* bases) const;
  Status Decompress(BlockCodecId codec, ByteView payload, MutableByteView out) const;
  void InflateAll(const BlockHead& head, const DeltaPayload& payload, BaseSource& bases,
                  uint32_t offset, DecodedBlock::Chunks& chunks) const;

  static constexpr size_t kIdleBufferBytes = 1u << 20;

  std::unique_ptr<Contexts> contexts_;
  mutable BufferPool buffers_{kIdleBufferBytes};
};

}  // namespace siltfs
