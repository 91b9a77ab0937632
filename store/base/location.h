// The location of a chunk as the index stores it: a hint, checked against the segment at every use.
//
// A location has 96 bits on disk (docs/format.md): the segment id (32 bits), the ordinal of the
// chunk in its segment (20), the byte offset of its block (25) and zeros (19). The ordinal
// identifies the chunk, so a whole segment may be replaced under the same id.
#pragma once

#include <compare>
#include <cstdint>

#include "store/base/bytes.h"

namespace siltfs {

using SegmentId = uint32_t;

struct Location {
  static constexpr size_t kEncodedSize = 12;
  static constexpr uint32_t kMaxOrdinal = (1U << 20) - 1;
  static constexpr uint32_t kMaxBlockOffset = (1U << 25) - 1;

  SegmentId segment = 0;
  uint32_t ordinal = 0;
  uint32_t block_offset = 0;

  auto operator<=>(const Location&) const = default;

  void EncodeTo(std::span<uint8_t, kEncodedSize> out) const {
    uint64_t low = static_cast<uint64_t>(ordinal) | static_cast<uint64_t>(block_offset) << 20;
    for (size_t i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(segment >> (8 * i));
    for (size_t i = 0; i < 8; ++i) out[4 + i] = static_cast<uint8_t>(low >> (8 * i));
  }
  static Location Decode(std::span<const uint8_t, kEncodedSize> in) {
    Location location;
    for (size_t i = 0; i < 4; ++i) location.segment |= static_cast<uint32_t>(in[i]) << (8 * i);
    uint64_t low = 0;
    for (size_t i = 0; i < 8; ++i) low |= static_cast<uint64_t>(in[4 + i]) << (8 * i);
    location.ordinal = static_cast<uint32_t>(low) & kMaxOrdinal;
    location.block_offset = static_cast<uint32_t>(low >> 20) & kMaxBlockOffset;
    return location;
  }
};

// Segment ids start at 1. An index may use locations in segment 0 for its own marks, such as a
// tombstone.
inline constexpr SegmentId kNoSegment = 0;

}  // namespace siltfs
