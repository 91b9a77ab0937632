// Checks one segment from header to footer: its consistency, and its agreement with metadata and
// with the index.
//
// Thread-safety: one object per thread; several objects may run at the same time.
#pragma once

#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/segments/chunk_verifier.h"
#include "store/segment/segment_scan.h"

namespace siltfs {

class SegmentWalk {
 public:
  SegmentWalk(CheckContext& context, ChunkFinder& finder, ChunkNamer namer);

  // Reports faults as findings. Fails only with errors that end the whole check.
  Status Check(SegmentId id);

 private:
  // A chunk that the index should find.
  struct Place {
    uint32_t ordinal = 0;
    uint32_t offset = 0;
    bool may_be_absent = false;
  };

  void Say(const char* code, std::optional<uint64_t> offset, std::string message);
  void Say(const char* code, const Status& failure);

  // Checks that metadata allows a segment with this id.
  void CheckPresence();
  void CheckHeader();
  void CheckLength();
  void ReadFooter();
  Status ScanAll();
  Status OnDamage(uint64_t begin, uint64_t end, const Status& cause);
  Status OnBlock(const BlockHead& head, uint32_t offset);
  void CompareWithFooter(const BlockHead& head, uint32_t offset);
  // Collects the chunks of a block for FindGathered, which looks up many chunks at once.
  void CompareWithIndex(const BlockHead& head, uint32_t offset);
  void FindGathered();
  void NoteSecondary(const Place& place);
  // Decompresses the block and verifies the names of its whole chunks.
  void CheckData(const BlockHead& head, uint32_t offset);
  void CheckTotals();
  void CheckRecord();

  CheckContext& context_;
  ChunkFinder& finder_;
  ChunkVerifier verifier_;

  // State of the current segment.
  SegmentId id_ = kNoSegment;
  std::string path_;
  const SegmentRecord* record_ = nullptr;
  std::shared_ptr<SegmentReader> reader_;
  uint64_t size_ = 0;
  std::optional<SegmentTrailer> trailer_;
  std::optional<SegmentFooter> footer_;
  uint64_t committed_length_ = 0;
  bool footer_wrong_ = false;
  bool truncated_ = false;
  bool damaged_ = false;
  bool lost_commit_ = false;
  ScanResult scan_;
  uint32_t end_ordinal_ = 0;  // after the last block so far, which may be damaged
  std::vector<ChunkName> gathered_;
  std::vector<Place> places_;  // of the chunks in gathered_
  uint64_t not_indexed_ = 0;
  uint64_t not_noted_ = 0;  // chunks that the index does not point to, in a segment that is not
                            // noted
  uint32_t not_noted_offset_ = 0;
  uint32_t not_indexed_offset_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace siltfs
