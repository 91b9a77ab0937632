// Checks whether the index leads to every chunk in a segment. If it does, the footer cache may
// decide again that new chunks are duplicates of these chunks (secondary_copies.h).
//
// An unsealed segment is compared up to its current end. An entry is made again if it is missing,
// if it leads into a removed segment, or if the chunk is not at the place to which it leads.
// Entries that lead to another copy stay as they are, and so do entries that lead to a chunk with
// which this one shares its entry (ChunkIndex::OrderOf).
//
// Thread-safety: one thread at a time. Memory: 20 bytes for each chunk of the segment. Errors:
// those of the index, the pipeline, `pace` and `before_entries`. A segment that cannot be read is
// not confirmed. Durability: after Check, the caller takes a sequence from
// BlockPipeline::EndSequence. The new entries are durable when the index is durable up to this
// sequence. Before that, a file may refer to one of the chunks, and a crash may lose the chunk's
// entry. The next mount must then compare the segment again; `before_entries` makes sure of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"
#include "store/segment/block.h"

namespace siltfs {

class EntryCheck {
 public:
  // Called after the block heads of a segment were read, with their size in bytes. May wait. A
  // failure ends Check, which returns it.
  using Pace = std::function<Status(uint64_t bytes)>;

  // Called before entries are made for chunks of the segment. A failure ends Check, which returns
  // it.
  using BeforeEntries = std::function<Status(SegmentId segment)>;

  // All references must outlive the object. `gone` is true for a removed segment; an entry that
  // leads into such a segment counts as missing.
  EntryCheck(ChunkIndex& index, SegmentCache& segments, ChunkReader& reader,
             BlockPipeline& pipeline, std::function<bool(SegmentId)> gone, Pace pace,
             BeforeEntries before_entries);

  // True if the index leads to every chunk of the segment.
  Result<bool> Check(SegmentId segment);
  // Entries made so far.
  uint64_t made() const { return made_; }

 private:
  // The contents of a segment, by ordinal.
  struct Content {
    std::vector<BlockPlace> blocks;
    std::vector<ChunkName> names;

    Location PlaceOf(SegmentId segment, uint32_t ordinal) const;
  };
  Status Read(SegmentId segment, Content& content);
  // A chunk for which the index leads to no copy. `misled` is the place to which it leads instead,
  // if any.
  struct Missing {
    uint32_t ordinal = 0;
    std::optional<Location> misled;
  };
  // Appends to `missing` the chunks in [begin, end) for which the index leads to no copy. Returns
  // false if the index leads to other copies of some of these chunks.
  Result<bool> FindMissing(SegmentId segment, const Content& content, uint32_t begin, uint32_t end,
                           std::vector<Missing>& missing);
  // Whether the chunk, or one that shares its index entry, may lie at the place; true also if the
  // place cannot be read.
  bool MayHold(const Location& place, const ChunkName& name);
  // Whether the index has one entry for both names.
  bool ShareEntry(const ChunkName& a, const ChunkName& b) const {
    return a == b || index_.OrderOf(a) == index_.OrderOf(b);
  }

  ChunkIndex& index_;
  SegmentCache& segments_;
  ChunkReader& reader_;
  BlockPipeline& pipeline_;
  const std::function<bool(SegmentId)> gone_;
  const Pace pace_;
  const BeforeEntries before_entries_;
  uint64_t made_ = 0;
};

}  // namespace siltfs
