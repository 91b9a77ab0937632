// Compresses and decompresses blocks: with zstd over all chunks of a block together, or not at all.
//
// Thread-safety: one codec serves a whole store; any thread may make any call, and no call waits
// for another. Memory: as many compression and decompression contexts as were in use at the peak,
// and at most kIdleBufferBytes of free buffers. Ownership: the caller owns results. A codec must
// outlive the readers that use it, but not the buffers that it returned.
#pragma once

#include <cstdint>
#include <memory>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/block.h"

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

  // The uncompressed bytes of a payload verified by CheckPayload. kCorruption if it doesn't
  // decompress to head.plain_bytes bytes.
  Result<Buffer> DecodePayload(const BlockHead& head, ByteView payload) const;

  // A buffer that is not zeroed. Stored payloads and decompressed blocks both use such buffers, so
  // that they share one pool.
  Buffer TakeBuffer(size_t size) const { return buffers_.Take(size); }

 private:
  class Contexts;
  static constexpr size_t kIdleBufferBytes = 1u << 20;

  std::unique_ptr<Contexts> contexts_;
  mutable BufferPool buffers_{kIdleBufferBytes};
};

}  // namespace siltfs
