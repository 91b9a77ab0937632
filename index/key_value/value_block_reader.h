// Reads a block of values. As SegmentReader::ReadBlock, but with a first read of the size that
// blocks of values have, which is a fraction of a chunk block's: it decides what a lookup costs.
//
// Thread-safety: any thread. Errors: kCorruption for whatever is not as it was written, also where
// the file ends in the middle (the caller adds the place); Env's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_format.h"

namespace siltfs {

// One read if the block takes no more than `expected_bytes` on flash, at least kBlockHeaderSize.
// Everything is verified: both checksums, the segment it says it is in, its length.
Result<DecodedBlockPtr> ReadValueBlock(const File& file, const SegmentIdentity& identity,
                                       uint64_t offset, size_t expected_bytes,
                                       const BlockCodec& codec);

}  // namespace siltfs
