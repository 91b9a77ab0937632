// One extent of a file's overlay, the mutable part of its content: the value of the key (inode,
// offset). Extents of a file do not overlap; each overrides the recipe in its range. Encoding:
// docs/format.md, "Overlay extent".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"

namespace siltfs {

// Bytes [skip, skip + length) of a stored chunk.
struct ChunkSlice {
  ChunkName name;
  uint32_t chunk_length = 0;
  uint32_t skip = 0;
  uint32_t length = 0;

  bool IsWhole() const { return skip == 0 && length == chunk_length; }
  bool operator==(const ChunkSlice&) const = default;
};

struct OverlayExtent {
  enum class Kind : uint8_t { kPlain = 1, kHole = 2, kChunks = 3 };
  // Limits of one extent. They keep the cost of growing an extent low.
  static constexpr size_t kMaxPlainBytes = 128u << 10;
  static constexpr size_t kMaxSlices = 128;

  Kind kind = Kind::kHole;
  uint64_t length = 0;             // bytes of the file it covers; > 0
  std::string plain;               // kPlain: length bytes
  std::vector<ChunkSlice> slices;  // kChunks: their lengths add up to length

  bool operator==(const OverlayExtent&) const = default;

  std::string Encode() const;
  static Result<OverlayExtent> Decode(std::string_view value);
};

}  // namespace siltfs
