// Reads the contents of many files in the order of the log, instead of file by file: a caller asks
// where the chunks of its files lie, sorts them, and reads them in this order. So each block of the
// log is read and decoded once, even if its chunks belong to many files.
//
// Thread-safety: every call of ContentSource from any thread; a Reader belongs to one thread.
// Ownership: belongs to the FileSystem (FileSystem::contents), which must outlive the readers.
// Errors: those of FileSystem::Read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "fs/interface/file_system.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"

namespace siltfs {

// A chunk, and where it probably lies. The place is a hint: it is verified when the chunk is read.
struct ChunkPlace {
  ChunkName name;
  uint32_t length = 0;
  Location location = {};  // segment kNoSegment if it is not known
};

// A part of a file's content.
struct ContentPiece {
  enum class Kind : uint8_t {
    kChunk,
    kHole,
    kOther,  // bytes to read by FileSystem::Read: the file is being written
  };
  Kind kind = Kind::kHole;
  uint64_t offset = 0;
  uint64_t length = 0;
  ChunkPlace chunk = {};
};

class ContentSource {
 public:
  // Reads chunks. It keeps the block that it has read last, so that the next chunk of this block
  // costs nothing.
  class Reader {
   public:
    virtual ~Reader() = default;
    // Copies the chunk to `out`, which is as long as the chunk.
    virtual Status Read(const ChunkPlace& place, MutableByteView out) = 0;
  };

  virtual ~ContentSource() = default;
  virtual std::unique_ptr<Reader> NewReader() = 0;
  // Visits the pieces of a regular file in order, from the one at `offset` on, until `visit`
  // returns false.
  virtual Status Visit(InodeNumber file, uint64_t offset,
                       const std::function<bool(const ContentPiece&)>& visit) = 0;
};

}  // namespace siltfs
