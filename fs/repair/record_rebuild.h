// What metadata says of the store as a whole, made anew for metadata of which a part is lost: so
// that nothing that is in use is handed out again, and the store may be opened.
//
// Records that were salvaged may be older than those that were lost. So they are taken for what is
// true at least: numbers in use are also looked for in every key and name, and in the segments and
// the index, and the number of the last commit is far above all that any superblock, header or
// block of the store can tell of (docs/crash-model.md, I5). The records of segments come from the
// segments' own footers, and intents and notes of what was being done are dropped: the files tell.
//
// Not thread-safe. Memory: the segments' records. Errors: Env's, where the segments cannot be
// listed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"
#include "store/base/location.h"
#include "store/env/env.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class RecordRebuild {
 public:
  // Of each entry that was salvaged: whether it is to be kept as it is. What is not is made anew,
  // or is no such record.
  bool Keep(std::string_view key, std::string_view value);

  // Once, after all of them: the records that take their places.
  Result<std::vector<Mutation>> Finish(Env& env, const std::string& store,
                                       const SuperblockState& state);

 private:
  bool KeepSingle(std::string_view key, std::string_view value);
  void NoteInode(uint64_t inode) { inode_limit_ = std::max(inode_limit_, inode + 1); }
  void NoteInodes(std::string_view key, std::string_view value);
  Status SurveySegments(Env& env, const std::string& store, const StoreUuid& uuid);
  void SurveySegment(Env& env, const std::string& store, const SegmentIdentity& identity);
  void SurveyIndex(Env& env, const std::string& store, const Superblock& superblock);
  IdRanges Ids() const;

  uint64_t last_commit_ = 0;
  IdRanges ids_;
  bool counters_ = false;
  uint64_t inode_limit_ = 0;
  uint64_t highest_sequence_ = 0;
  uint64_t segment_limit_ = 0;
  std::map<SegmentId, SegmentRecord> segments_;
};

}  // namespace siltfs
