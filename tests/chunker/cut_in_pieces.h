// The streaming interface as a caller uses it.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

// Cuts the pieces of `data` that `next_size` asks for, as a caller of the streaming interface
// would.
template <typename NextSize>
std::vector<uint32_t> CutInPieces(Chunker& chunker, ByteView data, NextSize next_size) {
  std::vector<uint32_t> lengths;
  while (!data.empty()) {
    Bytes piece_copy;  // its own allocation, so that a look beyond it or back at an earlier one is
                       // caught
    {
      const ByteView piece = data.first(std::min<size_t>(next_size(), data.size()));
      piece_copy.assign(piece.begin(), piece.end());
      data = data.subspan(piece.size());
    }
    ByteView rest = piece_copy;
    while (true) {
      const size_t before = chunker.pending();
      const std::optional<size_t> cut = chunker.Next(rest);
      if (!cut) {
        REQUIRE(chunker.pending() == before + rest.size());
        break;
      }
      REQUIRE(*cut > 0);
      REQUIRE(*cut <= rest.size());
      REQUIRE(chunker.pending() == 0);
      lengths.push_back(static_cast<uint32_t>(before + *cut));
      rest = rest.subspan(*cut);
    }
  }
  if (chunker.pending() > 0) lengths.push_back(static_cast<uint32_t>(chunker.pending()));
  return lengths;
}

}  // namespace siltfs::testing
