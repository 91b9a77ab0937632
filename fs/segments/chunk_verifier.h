// Verifies that bytes are the chunk that a chunk table records: computes the name and the tag of
// the bytes again. Checks and scrubs use it, because a block's checksums only show that the block
// is as it was written.
//
// Thread-safety: one object for each thread.
#pragma once

#include <utility>

#include "chunker/chunk_namer.h"
#include "store/base/chunk_name.h"
#include "store/segment/block_head.h"

namespace siltfs {

class ChunkVerifier {
 public:
  ChunkVerifier(ChunkNamer namer, const TagKey::Secret& tag_secret)
      : namer_(std::move(namer)), tag_key_(tag_secret) {}

  enum class Verdict : uint8_t { kRight, kOtherName, kOtherTag };
  Verdict Verify(const ChunkRecord& record, ByteView bytes);

 private:
  ChunkNamer namer_;
  const TagKey tag_key_;
};

}  // namespace siltfs
