// The format of a segment file as a whole: layout, limits and header. docs/format.md ("Segments")
// lists all bytes. Pure functions of bytes; any thread.
//
// clang-format off
//   segment; without a footer it is open, with one it is sealed and immutable
//   +----------+---------+-----+---------+----------+
//   | header   | block   | ... | block   | [footer] |
//   | 64 bytes |         |     |         |          |
//   +----------+---------+-----+---------+----------+
//   0          64                        data_end
//
//   block (block_head.h)
//   +----------+---------------------+-----------------+
//   | header   | chunk table         | payload         |
//   | 56 bytes | 32 bytes a chunk    | 1 byte to 2 MiB |
//   +----------+---------------------+-----------------+
//   |<------------ head ------------->|
//
//   footer (segment_footer.h); only a segment with deltas has a base table
//   +---------------------+--------------------+------------------+----------+
//   | chunk table         | block table        | [base table]     | trailer  |
//   | 16 bytes a chunk    | 8 bytes a block    | 32 bytes a base  | 64 bytes |
//   +---------------------+--------------------+------------------+----------+
//   data_end                                                      end of file - 64
// clang-format on
//
// Errors of all decoders: kCorruption for bytes that differ from those written, kNeedsNewer for
// intact bytes with values unknown to this code. Offsets in errors are file offsets.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

inline constexpr uint32_t kSegmentFormatVersion = 1;
inline constexpr uint32_t kSegmentHeaderSize = 64;

// Limits. A chunk's length has 24 bits on disk, but the block limit bounds it, too.
inline constexpr uint32_t kMaxChunkLength = (1U << 24) - 1;
inline constexpr uint32_t kMaxBlockPlainBytes = 2U << 20;
inline constexpr uint32_t kMaxBlockChunks = 4096;
// No block starts at or beyond the target size; the last one may extend beyond it.
inline constexpr uint32_t kMaxSegmentTargetSize = Location::kMaxBlockOffset + 1;
inline constexpr uint32_t kMinSegmentTargetSize = 4096;
inline constexpr uint32_t kMaxSegmentChunks = Location::kMaxOrdinal + 1;

enum class SegmentKind : uint8_t {
  kData = 0,         // chunks of files
  kRecipeNodes = 1,  // nodes of recipe trees, uncompressed
};

// The store and the id of a segment; every part of the segment is checked against them.
struct SegmentIdentity {
  StoreUuid store;
  SegmentId id = kNoSegment;

  auto operator<=>(const SegmentIdentity&) const = default;

  // The seed for the checksums of block heads and footers. It causes heads and footers of another
  // store or segment to be rejected.
  uint64_t ChecksumSeed() const;
};

struct SegmentHeader {
  SegmentKind kind = SegmentKind::kData;
  SegmentIdentity identity;
  // The last commit that had completed when the segment was created.
  uint64_t last_commit = 0;

  bool operator==(const SegmentHeader&) const = default;
};

// Encodes the header to kSegmentHeaderSize bytes.
std::string EncodeSegmentHeader(const SegmentHeader& header);
// Decodes the header. Does not check the identity; see CheckIdentity.
Result<SegmentHeader> DecodeSegmentHeader(ByteView bytes);

// OK if both are equal; otherwise kCorruption, with an explanation.
Status CheckIdentity(const SegmentIdentity& found, const SegmentIdentity& expected);

}  // namespace siltfs
