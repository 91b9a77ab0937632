// Reads single blocks from a segment's file, for the reader and the scan.
//
// Thread-safety: any thread. Errors: kCorruption with path and offset for bytes that differ from
// those written, and for a file that ends within the block; otherwise Env's errors.
#pragma once

#include <cstdint>
#include <vector>

#include "store/base/buffer.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/base_ref.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

// The verified head of the block at `offset`; one read unless its chunk table is unusually long.
Result<BlockHead> ReadBlockHeadAt(const ReadableFile& file, const SegmentIdentity& identity,
                                  uint64_t offset);

// The verified payload of the block at `offset`, as stored.
Result<Bytes> ReadPayloadAt(const ReadableFile& file, const BlockHead& head, uint64_t offset);

// The bases of the deltas in the block at `offset`, from its verified payload. Empty, without a
// read, for a block without deltas.
Result<std::vector<DeltaBase>> ReadDeltaBasesAt(const ReadableFile& file, const BlockHead& head,
                                                uint64_t offset);

// Adds the bases of the deltas in the block at `offset` to the footer. Adds none if the payload is
// damaged, because then the block's deltas are lost anyway.
Status AddBasesAt(const ReadableFile& file, const BlockHead& head, uint64_t offset,
                  SegmentFooter& footer);

struct StoredBlock {
  BlockHead head;
  Buffer bytes;  // head and payload, as stored

  ByteView payload() const {
    return ByteView(bytes).subspan(head.head_bytes(), head.payload_bytes);
  }
};

// Most compressed blocks have at most this size, including the head.
inline constexpr size_t kUsualBlockBytes = 64U << 10;

// The verified block at `offset`. Takes one read if the block has at most `expected_bytes`. The
// buffer comes from the codec.
Result<StoredBlock> ReadStoredBlockAt(const ReadableFile& file, const SegmentIdentity& identity,
                                      const BlockCodec& codec, uint64_t offset,
                                      size_t expected_bytes = kUsualBlockBytes);

}  // namespace siltfs
