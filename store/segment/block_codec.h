// Compresses and decompresses blocks: zstd over all chunks of a block together, or none.
//
// Thread-safety: one codec serves a whole store; all calls from any thread, concurrently, and none
// waits for another. Memory: the peak number of compression and decompression contexts in use, and
// at most kIdleBufferBytes of free buffers. Ownership: the caller owns results. Must outlive its
// readers, but not its buffers.
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

  // Stores a block uncompressed unless zstd makes it at least 3 % smaller. kInvalidArgument for a
  // block beyond the format's limits.
  Result<EncodedBlock> Encode(PlainBlock block, const Compression& compression) const;

  // The uncompressed bytes of a payload verified by CheckPayload. kCorruption if it doesn't
  // decompress to head.plain_bytes bytes.
  Result<Buffer> DecodePayload(const BlockHead& head, ByteView payload) const;

  // Not zeroed. Also for payloads as stored, so that both kinds of buffers share one pool.
  Buffer TakeBuffer(size_t size) const { return buffers_.Take(size); }

 private:
  class Contexts;
  static constexpr size_t kIdleBufferBytes = 1u << 20;

  std::unique_ptr<Contexts> contexts_;
  mutable BufferPool buffers_{kIdleBufferBytes};
};

}  // namespace siltfs
