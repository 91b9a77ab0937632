// Copies chunks that are to outlive their segments into new segments (relocation), for garbage
// collection: in the order in which they lay, compressed as segments settle; blocks that are
// settled and wholly alive go as they are.
//
// The index is told by MoveEntries, once the copies are durable: before, it goes on leading to the
// old place, so that a crash leaves no entry that leads nowhere while the chunk lies somewhere
// else.
//
// Thread-safety: none. Memory: a block of each kind, one that is read, and some 48 bytes for each
// chunk that was copied and whose entry was not moved yet. Errors: kCorruption for a segment that
// is damaged where a chunk lives, of which nothing may be removed then; those of the log, which end
// all writing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fs/dedup/block_pipeline.h"
#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/segment_cache.h"
#include "index/chunk_index.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class Relocator {
 public:
  struct Options {
    Compression compression;
    uint32_t block_plain_bytes = 512u << 10;
    // A place in such a segment is as good as none.
    std::function<bool(SegmentId)> gone;
    // Called before the index is led away from a place in a segment that stays; must make that
    // known durably (SecondaryCopies::Note).
    std::function<Status(SegmentId)> leave_copy = [](SegmentId) { return Status::Ok(); };
    // A chunk that is known to be damaged: it is nothing to be copied.
    std::function<bool(SegmentId, uint32_t ordinal)> is_damaged;
    // Called before each block is read, with its plain bytes; a failure is returned. May wait.
    std::function<Status(uint64_t bytes)> pace;
    // Calls what reads and compresses, perhaps from another thread.
    std::function<void(const std::function<void()>&)> run;
  };
  // All must outlive it.
  Relocator(ChunkIndex& index, SegmentCache& segments, ChunkReader& reader, BlockPipeline& pipeline,
            const BlockCodec& codec, Options options);

  struct Source {
    SegmentId segment = kNoSegment;
    bool settled = false;
    SegmentFooter footer;
    std::function<bool(uint32_t ordinal)> is_live;
    // Of a block whose head cannot be read: all that lives in it lies whole elsewhere. May be
    // empty.
    std::function<bool(uint32_t first, uint32_t end)> lies_elsewhere = {};
  };
  // Copies every live chunk that has no other good place. After kNoSpace from here or Flush some of
  // them are nowhere: every later call fails with it, and no segment may go for what was copied.
  Status CopyLive(const Source& source);
  // Appends what is left in open blocks.
  Status Flush();

  // Such a kNoSpace was met.
  bool is_full() const { return !full_.ok(); }

  // Chunks copied, whose entries are to be moved.
  size_t moves() const { return moves_.size(); }
  // Chunks were copied, or found elsewhere where perhaps they were only just written: a commit has
  // to make them durable before their segments may go.
  bool needs_commit() const { return !moves_.empty() || found_elsewhere_; }
  // Has the index lead to the copies, which must be durable. kIoError and so on from the index.
  Status MoveEntries();

  uint64_t bytes_copied() const { return bytes_copied_; }  // as appended

 private:
  // Where a chunk lay, and where the index led instead if that is of no use.
  struct Origin {
    Location place;
    std::optional<Location> misled;
  };
  struct OpenBlock {
    PlainBlock content;
    std::vector<Origin> from;  // of each chunk
  };
  struct Wanted {
    uint32_t number = 0;  // of the chunk, in its block
    std::optional<Location> misled;
  };

  // Which of the block's live chunks must be copied.
  Result<std::vector<Wanted>> ToCopy(const Source& source, const BlockHead& head);
  // Whether the chunk can be had at the place.
  bool IsThere(const Location& place, const ChunkRecord& record);
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
  bool found_elsewhere_ = false;  // since entries were moved
  uint64_t bytes_copied_ = 0;
  Status full_;  // the kNoSpace that lost a block
};

}  // namespace siltfs
