// Cuts data through the streaming interface, as a caller does.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

// Cuts `data` in pieces of the sizes that `next_size` returns.
template <typename NextSize>
std::vector<uint32_t> CutInPieces(Chunker& chunker, ByteView data, NextSize next_size) {
  std::vector<uint32_t> lengths;
  while (!data.empty()) {
    Bytes piece_copy;  // a separate allocation, so that AddressSanitizer detects reads beyond the
                       // piece, and reads of earlier pieces
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
