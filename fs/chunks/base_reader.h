// Reads bases: the whole chunks from which deltas are inflated (docs/glossary.md). A base is named
// by its content. It is found like any other chunk (chunk_places.h), but only a copy that is stored
// whole counts.
//
// Thread-safety: every call from any thread. Errors: kCorruption with the path and offset of the
// damage, if all whole copies are damaged; kNotFound if no segment has a whole copy; kIoError.
// Damaged blocks are put on the damage list. Memory: blocks in the block cache.
#pragma once

#include <functional>
#include <vector>

#include "fs/chunks/block_reader.h"
#include "fs/chunks/chunk_places.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/segment/base_source.h"

namespace siltfs {

// Whether `bytes` have the name and tag of `record`. May be empty: then it is not checked.
using IsRightChunk = std::function<bool(const ChunkRecord& record, ByteView bytes)>;

class BaseReader final : public BaseSource {
 public:
  // All must outlive the reader. `is_right` is called for bases that are on the damage list but can
  // be read.
  BaseReader(SegmentCache& segments, BlockReader& blocks, ChunkPlaces& places,
             const DamageList& damage, IsRightChunk is_right);

  // Reads the base if the footer cache, the index or the segment guide know its place. So reading
  // the undamaged chunks of a block takes no search of all segments if a base is lost.
  Result<BaseBytes> ReadBase(const BaseRef& base) override;

  // Like ReadBase, but searches all segments if everything else fails. `dependent` is the segment
  // that needs the base: a search of all segments covers all bases of this segment.
  Result<BaseBytes> FindBase(const BaseRef& base, SegmentId dependent);

  // Whether the chunk of this name and tag is whole at the location, can be read there, and will
  // stay whole: its segment is in its final form.
  bool StaysWholeAt(const Location& location, const ChunkRecord& record);

 private:
  Result<BaseBytes> Read(const BaseRef& base, ChunkPlaces::Effort effort,
                         const ChunkPlaces::Companions& companions);
  Result<bool> ReadAt(const Location& location, bool offset_known, const BaseRef& base,
                      BaseBytes& bytes);
  // The name prefixes of the bases of a segment, at most kMostCompanions.
  std::vector<uint64_t> BasesOf(SegmentId dependent);

  SegmentCache& segments_;
  BlockReader& blocks_;
  ChunkPlaces& places_;
  const DamageList& damage_;
  const IsRightChunk is_right_;
};

// The bases of the deltas in one segment, searched in all segments if necessary: for scrubs and
// copies of whole segments.
class BasesOfSegment final : public BaseSource {
 public:
  BasesOfSegment(BaseReader& reader, SegmentId dependent)
      : reader_(reader), dependent_(dependent) {}

  Result<BaseBytes> ReadBase(const BaseRef& base) override {
    return reader_.FindBase(base, dependent_);
  }

 private:
  BaseReader& reader_;
  const SegmentId dependent_;
};

}  // namespace siltfs
