// The payload of a block with deltas: a table of the deltas, the whole chunks, and a zstd frame for
// each delta. docs/format.md ("Blocks with deltas") lists all bytes.
//
// clang-format off
//   +----------+-------------------+-----------------------------+--------------------+
//   | header   | delta table       | whole chunks: one zstd      | zstd frames of the |
//   | 12 bytes | 40 bytes a delta  | frame, or uncompressed      | deltas             |
//   +----------+-------------------+-----------------------------+--------------------+
// clang-format on
//
// Pure functions of bytes; any thread. Errors: kCorruption for a payload that no writer produces,
// even if its checksum is right; kNeedsNewer for values unknown to this code.
#pragma once

#include <cstdint>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_ref.h"
#include "store/segment/block_head.h"

namespace siltfs {

inline constexpr uint32_t kDeltaHeaderSize = 12;
inline constexpr uint32_t kDeltaTableEntrySize = 40;

// A chunk of a block that is being encoded, compressed with its base as prefix.
struct DeltaFrame {
  DeltaBase delta;
  Bytes frame;
};

struct DeltaPayload {
  std::vector<DeltaBase> deltas;  // ascending by position
  std::vector<ByteView> frames;   // by entry of `deltas`
  BlockCodecId whole_codec = BlockCodecId::kNone;
  ByteView whole;            // as stored; empty if every chunk is a delta
  uint32_t whole_plain = 0;  // uncompressed bytes of all whole chunks
};

// Encodes a payload. `deltas` has at least one entry, ascending by position.
Bytes EncodeDeltaPayload(const std::vector<DeltaFrame>& deltas, BlockCodecId whole_codec,
                         ByteView whole);

// Decodes a payload that CheckPayload has verified. The views point into `payload`.
Result<DeltaPayload> DecodeDeltaPayload(const BlockHead& head, ByteView payload);

}  // namespace siltfs
