// One segment, from its header to its footer: against itself, against what metadata says of it, and
// against the index.
//
// Thread-safety: one object a thread, several at the same time.
#pragma once

#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/dedup/chunk_verifier.h"
#include "store/segment/segment_scan.h"

namespace siltfs {

class SegmentWalk {
 public:
  SegmentWalk(CheckContext& context, ChunkFinder& finder, ChunkNamer namer);

  // What is wrong with the segment is reported. Fails only for what ends the check.
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

  // Whether the segment may be there, going by its number.
  void CheckPresence();
  void CheckHeader();
  void CheckLength();
  void ReadFooter();
  Status ScanAll();
  Status OnDamage(uint64_t begin, uint64_t end, const Status& cause);
  Status OnBlock(const BlockHead& head, uint32_t offset);
  void CompareWithFooter(const BlockHead& head, uint32_t offset);
  // Gathers a block's chunks; FindGathered then asks the index for many at once.
  void CompareWithIndex(const BlockHead& head, uint32_t offset);
  void FindGathered();
  void NoteSecondary(const Place& place);
  // Decompresses the block and names its chunks anew.
  void CheckData(const BlockHead& head, uint32_t offset);
  void CheckTotals();
  void CheckRecord();

  CheckContext& context_;
  ChunkFinder& finder_;
  ChunkVerifier verifier_;

  // Of the segment that is being checked.
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
  uint32_t end_ordinal_ = 0;  // one beyond the last block's so far, damaged ones included
  std::vector<ChunkName> gathered_;
  std::vector<Place> places_;  // of the gathered
  uint64_t not_indexed_ = 0;
  uint64_t not_noted_ = 0;  // to which the index does not lead, in a segment that is not noted
  uint32_t not_noted_offset_ = 0;
  uint32_t not_indexed_offset_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace siltfs
