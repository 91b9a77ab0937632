// Cuts chunks off the front of a stream that is given in pieces, and puts them into the chunk
// store.
//
// Chunks are named, tagged and looked up many at a time, also across pieces. All-zero chunks become
// holes. Thread-safety: none; each stream has its own cutter. Ownership: the pieces must stay valid
// until Finish returns, and the other arguments must outlive the cutter. Errors: those of
// ChunkStore::Put. After an error the cutter must not be used any more.
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

  // Cuts whole chunks off the front of `data`. Stops when at least `enough` bytes are cut off, or
  // when no chunk ends in the rest of `data`. Returns the number of bytes that were cut off. The
  // next piece must begin with the byte after these.
  Result<uint64_t> Cut(ByteView data, uint64_t enough = UINT64_MAX);
  // Puts the chunks that are cut off but not put yet. Returns all parts in order.
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
