// Rebuilds the store-wide records of metadata with losses, so that the store can be opened and no
// number in use is allocated again.
//
// Salvaged records may be older than the lost ones, so the numbers in them are only lower bounds.
// Numbers in use are also collected from every key and name, from the segments and from the index.
// The number of the last commit is set far above any number that a superblock, header or block of
// the store can hold (docs/crash-model.md, I5). Segment records are made from the segments'
// footers. Intents and notes of secondary copies are dropped, because the files show which segments
// were replaced, and the next mount makes the notes again. Snapshots and versions of records are
// kept as they are. If a loss has left some that do not fit together, RepairVersions repairs them.
//
// Not thread-safe. Memory: the segments' records. Errors: Env's, if the segments cannot be listed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/former_segments.h"
#include "fs/records/segment_record.h"
#include "store/base/location.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class RecordRebuild {
 public:
  // Call for each salvaged entry. Returns whether to keep the entry unchanged. Returns false if the
  // entry is malformed, if Finish makes the records of its kind again, or if the store can do
  // without it.
  bool Keep(std::string_view key, std::string_view value);

  // Call once, after the last Keep. Returns the new records.
  Result<std::vector<Mutation>> Finish(Env& env, const std::string& store, SegmentStore& segments,
                                       const SuperblockState& state);

 private:
  bool KeepSingle(std::string_view key, std::string_view value);
  bool KeepSnapshot(std::string_view key, std::string_view value);
  bool KeepVersion(std::string_view key, std::string_view value);
  void NoteInode(uint64_t inode) { inode_limit_ = std::max(inode_limit_, inode + 1); }
  void NoteInodes(std::string_view key, std::string_view value);
  Status SurveySegments(SegmentStore& segments, const StoreUuid& uuid);
  void SurveySegment(SegmentStore& segments, const SegmentIdentity& identity);
  void SurveyIndex(Env& env, const std::string& store, const Superblock& superblock);
  IdRanges Ids() const;

  uint64_t last_commit_ = 0;
  IdRanges ids_;
  FormerSegments former_;
  bool counters_ = false;
  uint64_t inode_limit_ = 0;
  uint64_t highest_sequence_ = 0;
  uint64_t segment_limit_ = 0;
  std::map<SegmentId, SegmentRecord> segments_;
  bool deltas_ = false;  // the superblock allows deltas
};

}  // namespace siltfs
