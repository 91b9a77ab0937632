// Reads single blocks from a segment's file, for the reader and the scan.
//
// Thread-safety: any thread. Errors: kCorruption with path and offset for whatever is not as it was
// written, also where the file ends in the middle; Env's for the rest.
#pragma once

#include <cstdint>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_head.h"

namespace siltfs {

// The head of the block at `offset`, verified; one read unless its chunk table is unusually long.
Result<BlockHead> ReadBlockHeadAt(const File& file, const SegmentIdentity& identity,
                                  uint64_t offset);

// The payload of the block at `offset`, as stored, verified.
Result<Bytes> ReadPayloadAt(const File& file, const BlockHead& head, uint64_t offset);

struct StoredBlock {
  BlockHead head;
  Buffer bytes;  // head and payload, as stored

  ByteView payload() const {
    return ByteView(bytes).subspan(head.head_bytes(), head.payload_bytes);
  }
};

// What most compressed blocks take, head included.
inline constexpr size_t kUsualBlockBytes = 64U << 10;

// All of the block at `offset`, verified; one read for a block of up to `expected_bytes`. Its bytes
// are in a buffer of the codec's.
Result<StoredBlock> ReadStoredBlockAt(const File& file, const SegmentIdentity& identity,
                                      const BlockCodec& codec, uint64_t offset,
                                      size_t expected_bytes = kUsualBlockBytes);

}  // namespace siltfs
