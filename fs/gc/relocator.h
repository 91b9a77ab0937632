// Relocation, a part of garbage collection: copies the live chunks of segments that are to be
// removed into new segments. The copies keep the old order, and are compressed like recompressed
// segments. A large block of a recompressed segment may be copied unchanged if all its chunks are
// copied. Deltas are inflated, so the copies are whole.
//
// MoveEntries updates the index once the copies are durable. Until then the index leads to the old
// places. So a crash that loses the copies leaves no entry that leads to a lost copy.
//
// Thread-safety: none. Memory: a block of each kind, a block that is read, and some 48 bytes for
// each copied chunk until its entry is moved. Errors: kCorruption if a live chunk of a segment is
// damaged; the segment must then not be removed. Errors of the log, which end all writing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class Relocator {
 public:
  struct Options {
    Compression compression;
    uint32_t block_plain_bytes = 512u << 10;
    // True for a segment that was removed or is a victim. A location in it counts as missing.
    std::function<bool(SegmentId)> gone;
    // Called before the index entry of a copied chunk is moved away from a location in a segment
    // that is not to be removed. Must note this segment durably (SecondaryCopies::Note).
    std::function<Status(SegmentId)> leave_copy = [](SegmentId) { return Status::Ok(); };
    // True for a chunk that is known to be damaged. CopyLive fails if it must copy such a chunk.
    std::function<bool(SegmentId, uint32_t ordinal)> is_damaged;
    // Called before each block is read, with the number of its uncompressed bytes. May wait. A
    // failure is returned.
    std::function<Status(uint64_t bytes)> pace;
    // Runs one step of reading or compressing, perhaps on another thread, and waits for its end.
    std::function<void(const std::function<void()>&)> run;
  };
  // All must outlive it.
  Relocator(ChunkIndex& index, SegmentCache& segments, ChunkReader& reader, BlockPipeline& pipeline,
            const BlockCodec& codec, Options options);

  struct Source {
    SegmentId segment = kNoSegment;
    bool recompressed = false;
    SegmentFooter footer;
    std::function<bool(uint32_t ordinal)> is_live;
    // True for a chunk that is the base of a delta (SegmentMark::IsBase). A copy elsewhere counts
    // only if it will stay whole. May be empty: no chunk is a base.
    std::function<bool(uint32_t ordinal)> is_base = {};
    // Called for a block with an unreadable head, which has the ordinals [first, end). True if all
    // live chunks of the block have undamaged copies elsewhere. May be empty.
    std::function<bool(uint32_t first, uint32_t end)> lies_elsewhere = {};
  };
  // Copies every live chunk of the segment that has no good copy elsewhere. After CopyLive or Flush
  // has failed with kNoSpace, some chunks have no copy. Then every later call fails with kNoSpace,
  // and none of the segments that were passed to CopyLive may be removed.
  Status CopyLive(const Source& source);
  // Appends the open blocks.
  Status Flush();

  // True after CopyLive or Flush has failed with kNoSpace.
  bool is_full() const { return !full_.ok(); }

  // The number of copied chunks whose index entries do not lead to the copies yet.
  size_t moves() const { return moves_.size(); }
  // True if chunks were copied, or if copies were found elsewhere that may not be durable yet. A
  // commit must make all these copies durable before the old segments may be removed.
  bool needs_commit() const { return !moves_.empty() || found_elsewhere_; }
  // Makes the index lead to the copies, which must be durable. Errors: those of the index.
  Status MoveEntries();

  uint64_t bytes_copied() const { return bytes_copied_; }  // as appended

 private:
  // `place` is the old place of a chunk. `misled` is set if the index leads to another place, where
  // the chunk is missing or damaged.
  struct Origin {
    Location place;
    std::optional<Location> misled;
  };
  struct OpenBlock {
    PlainBlock content;
    std::vector<Origin> from;  // of each chunk
  };
  struct Wanted {
    uint32_t number = 0;  // the position of the chunk in its block, from 0
    std::optional<Location> misled;
  };

  // Returns the block's live chunks that must be copied.
  Result<std::vector<Wanted>> ToCopy(const Source& source, const BlockHead& head);
  // Whether the chunk can be read at the place and, if `must_stay_whole`, will be whole there.
  bool IsThere(const Location& place, const ChunkRecord& record, bool must_stay_whole);
  Status CopyBlock(const Source& source, const BlockPlace& place, uint32_t end_ordinal,
                   const SegmentReader& reader);
  Status Add(SegmentKind kind, const ChunkRecord& record, ByteView bytes, const Origin& from);
  Status FlushBlock(SegmentKind kind);
  Status Append(SegmentKind kind, const EncodedBlock& block, const std::vector<Origin>& from);

  ChunkIndex& index_;
  SegmentCache& segments_;
  ChunkReader& reader_;
  BlockPipeline& pipeline_;
  const BlockCodec& codec_;
  const Options options_;
  std::array<OpenBlock, 2> open_;  // by kind
  std::vector<BlockPipeline::Move> moves_;
  bool found_elsewhere_ = false;  // copies were found elsewhere since the last MoveEntries
  uint64_t bytes_copied_ = 0;
  Status full_;  // the kNoSpace with which a block of copies could not be appended
};

}  // namespace siltfs
