// Compresses and decompresses blocks: zstd over all chunks of a block together, or nothing.
//
// Thread-safety: one codec serves a whole store; every call may come from any number of threads at
// once, and none waits for another. It keeps as many compression and decompression contexts as were
// ever in use at the same time, and up to kIdleBufferBytes of buffers. Ownership: results are the
// caller's. Must outlive the readers that use it, though not the buffers.
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
  int level = 3;  // zstd's; of no meaning to kNone

  bool operator==(const Compression&) const = default;
};

// kInvalidArgument for a codec or level there isn't.
Status ValidateCompression(const Compression& compression);

class BlockCodec {
 public:
  BlockCodec();
  ~BlockCodec();
  BlockCodec(const BlockCodec&) = delete;
  BlockCodec& operator=(const BlockCodec&) = delete;

  // Stores plainly what zstd doesn't make at least 3 % smaller. kInvalidArgument for a block beyond
  // the format's limits.
  Result<EncodedBlock> Encode(PlainBlock block, const Compression& compression) const;

  // The plain bytes of a payload that CheckPayload has found whole. kCorruption if it doesn't
  // decompress to head.plain_bytes bytes.
  Result<Buffer> DecodePayload(const BlockHead& head, ByteView payload) const;

  // Not zeroed; for payloads as stored, too, so that what one gives back serves the other.
  Buffer TakeBuffer(size_t size) const { return buffers_.Take(size); }

 private:
  class Contexts;
  static constexpr size_t kIdleBufferBytes = 1u << 20;

  std::unique_ptr<Contexts> contexts_;
  mutable BufferPool buffers_{kIdleBufferBytes};
};

}  // namespace siltfs
