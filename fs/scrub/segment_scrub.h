// Verifies one segment, sealed or still growing. It verifies the footer and every block's
// checksums, decompresses every block, and computes every chunk's name and tag again. A delta that
// cannot be inflated is a damaged chunk.
//
// Thread-safety: one object for each thread; the store may be in use. Memory: a block and a footer.
// Errors: kIoError if the device fails for many blocks in a row, and the errors of `pace`. Damage
// is a finding, not an error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fs/chunks/base_reader.h"
#include "fs/records/damage_record.h"
#include "fs/records/segment_record.h"
#include "fs/segments/chunk_verifier.h"
#include "fs/segments/segment_cache.h"
#include "store/base/notice.h"

namespace siltfs {

struct SegmentFindings {
  uint64_t blocks = 0;  // that were read, damaged ones included
  uint64_t chunks = 0;
  uint32_t end_ordinal = 0;  // one beyond the last chunk
  bool footer_damaged = false;
  std::vector<DamagedBlock> damaged;  // by ascending ordinal
  std::vector<Notice> notices;        // one for each finding
  uint64_t damaged_chunks() const;
};

class SegmentScrub {
 public:
  // Called after each block with the number of its uncompressed bytes, which is an estimate for a
  // damaged block. May wait. A failure ends the verification, which returns it.
  using Pace = std::function<Status(uint64_t bytes)>;
  // `bases` reads the bases of deltas, with a search of all segments. All must outlive it.
  SegmentScrub(SegmentCache& segments, BaseReader& bases, ChunkVerifier verifier, Pace pace);

  // Returns the findings. `record`: the segment's record in metadata. If the segment is not sealed,
  // it may have grown since the record was written.
  Result<SegmentFindings> Verify(const OpenSegment& segment, const SegmentRecord& record);

 private:
  using Found = std::optional<BlockTable::Found>;

  void VerifyFooter(const OpenSegment& segment, const SegmentRecord& record);
  Result<Found> FindBlock(const OpenSegment& segment, uint32_t ordinal);
  // Verifies the block that should hold the ordinal. Returns the ordinal of the first chunk after
  // this block.
  Result<uint32_t> VerifyBlock(const OpenSegment& segment, const BlockTable::Found& found,
                               uint32_t ordinal);
  void VerifyChunks(const OpenSegment& segment, uint32_t offset, const DecodedBlock& block);
  // Notes as lost all chunks that the segment should have from `ordinal` on.
  void NoteRest(const OpenSegment& segment, const SegmentRecord& record, uint32_t ordinal);
  void Say(const std::string& path, uint64_t offset, const DamagedBlock& damaged,
           std::string_view cause);

  SegmentCache& segments_;
  BaseReader& bases_;
  ChunkVerifier verifier_;
  const Pace pace_;
  SegmentFindings findings_;      // of the segment that is being verified
  uint32_t device_failures_ = 0;  // in a row
};

}  // namespace siltfs
