// Compresses and decompresses blocks: zstd over all chunks of a block together, or nothing.
//
// Thread-safety: one codec serves a whole store; every call may come from any number of threads at
// once, and none waits for another. It keeps as many compression and decompression contexts as were
// ever in use at the same time. Ownership: results are the caller's. Must outlive the readers that
// use it.
#pragma once

#include <cstdint>
#include <memory>

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
  Result<Bytes> DecodePayload(const BlockHead& head, ByteView payload) const;

 private:
  class Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace siltfs
