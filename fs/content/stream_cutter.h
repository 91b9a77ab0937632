// Cuts chunks off the front of a stream that is given in pieces, and puts them into the chunk
// store.
//
// Chunks are named, tagged and looked up many at a time, also across pieces. All-zero chunks become
// holes. Thread-safety: none; one per stream. Ownership: borrows everything, the pieces until
// Finish. Errors: those of ChunkStore::Put; after an error the parts are useless.
#pragma once

#include <cstdint>
#include <vector>

#include "chunker/chunker.h"
#include "fs/chunks/chunk_store.h"
#include "fs/content/overlay.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

class StreamCutter {
 public:
  // A part that was cut off: a run of chunks, or a hole.
  struct Part {
    uint64_t hole_bytes = 0;  // 0: a run of chunks
    std::vector<ChunkSlice> slices;
  };

  StreamCutter(ChunkStore& chunks, const ChunkerTables& tables)
      : chunks_(chunks), tables_(tables) {}

  // Cuts whole chunks off `data` until `enough` bytes are cut off, or until no chunk ends in the
  // rest. Returns the number of bytes cut off. The next piece must begin with the byte after them.
  Result<uint64_t> Cut(ByteView data, uint64_t enough = UINT64_MAX);
  // Puts the chunks that are not put yet, and returns the parts in order.
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
