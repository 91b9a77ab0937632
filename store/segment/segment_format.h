// The format of a segment file, as far as it concerns the file as a whole: its limits and its
// header. Byte by byte in docs/format.md ("Segments"). Pure functions of bytes; any thread.
//
//   segment = header (64 bytes) { block } [ footer ]          a segment with a footer is sealed:
//   immutable block   = head (56 bytes + 32 a chunk) payload            block_head.h footer  = 16
//   bytes a chunk, 8 bytes a block, 64 bytes     segment_footer.h
//
// Errors of all decoders: kCorruption where bytes are not what was written, kNeedsNewer where they
// are whole but say things that this code doesn't know. Offsets in them are the file's.
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

// Limits. A chunk's length is 24 bits on disk, a block no larger than this: so is a chunk in it.
inline constexpr uint32_t kMaxChunkLength = (1U << 24) - 1;
inline constexpr uint32_t kMaxBlockPlainBytes = 2U << 20;
inline constexpr uint32_t kMaxBlockChunks = 4096;
// No block starts at or beyond the target size; the last one may reach beyond it.
inline constexpr uint32_t kMaxSegmentTargetSize = Location::kMaxBlockOffset + 1;
inline constexpr uint32_t kMinSegmentTargetSize = 4096;
inline constexpr uint32_t kMaxSegmentChunks = Location::kMaxOrdinal + 1;

enum class SegmentKind : uint8_t {
  kData = 0,         // chunks of files
  kRecipeNodes = 1,  // nodes of recipe trees, uncompressed
};

// What every part of a segment is checked against.
struct SegmentIdentity {
  StoreUuid store;
  SegmentId id = kNoSegment;

  auto operator<=>(const SegmentIdentity&) const = default;

  // Seeds the checksums of block heads and footers, so that those of another store or segment are
  // not accepted.
  uint64_t ChecksumSeed() const;
};

struct SegmentHeader {
  SegmentKind kind = SegmentKind::kData;
  SegmentIdentity identity;
  // The last commit that had completed when the segment was created.
  uint64_t last_commit = 0;

  bool operator==(const SegmentHeader&) const = default;
};

// kSegmentHeaderSize bytes.
std::string EncodeSegmentHeader(const SegmentHeader& header);
// Whichever store and segment it belongs to; see CheckIdentity.
Result<SegmentHeader> DecodeSegmentHeader(ByteView bytes);

// kCorruption, in words, unless both are the same.
Status CheckIdentity(const SegmentIdentity& found, const SegmentIdentity& expected);

}  // namespace siltfs
