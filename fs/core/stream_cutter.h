// Cuts chunks off the front of a stream that is given in pieces, and puts them.
//
// Chunks are named, tagged and looked up many at a time, also across pieces. All-zero chunks become
// holes. Thread-safety: none; one per stream. Ownership: borrows everything, the pieces until
// Finish. Errors: those of ChunkStore::Put; what was cut off is of no use then.
#pragma once

#include <cstdint>
#include <vector>

#include "chunker/chunker.h"
#include "fs/core/overlay.h"
#include "fs/dedup/chunk_store.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

class StreamCutter {
 public:
  // What was cut off, in order: runs of chunks, and holes.
  struct Part {
    uint64_t hole_bytes = 0;  // or
    std::vector<ChunkSlice> slices;
  };

  StreamCutter(ChunkStore& chunks, const ChunkerTables& tables)
      : chunks_(chunks), tables_(tables) {}

  // Cuts whole chunks off `data` until `enough` bytes are, or no chunk ends in what is left. The
  // bytes that were cut off; the next piece begins behind them.
  Result<uint64_t> Cut(ByteView data, uint64_t enough = UINT64_MAX);
  Result<std::vector<Part>> Finish();

 private:
  Status Put();

  ChunkStore& chunks_;
  const ChunkerTables& tables_;
  std::vector<Part> parts_;
  std::vector<ByteView> batch_;
  std::vector<ChunkName> names_;
};

}  // namespace siltfs
