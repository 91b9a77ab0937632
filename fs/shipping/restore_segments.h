// The segments of a store that is restored from its bucket (restore_store.h): which ones are the
// objects in the bucket, and which ones become local files.
//
//   metadata says   bucket has             result
//   sealed          the object             nothing to do
//   sealed          only tails             a local file; the first mount puts it
//   open            tails                  a local file of the committed length
//   open            only the object        a local file with its first bytes
//
// A tombstone hides the objects of local files, also those that a fenced writer may still put.
//
// Not thread-safe. Errors: as RestoreStore.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/segment_record.h"
#include "fs/shipping/restore_store.h"
#include "store/bucket/segment_content.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

class SegmentRestore {
 public:
  SegmentRestore(Env& env, ObjectStore& objects, const RestoreStoreOptions& options,
                 const RestoredState& state)
      : env_(env), objects_(objects), options_(options), state_(state) {}

  Status Run(const KvSnapshot& metadata);

 private:
  Status ListTails();
  Status ListObjects();
  Status RestoreOne(SegmentId id, const SegmentRecord& record);
  bool HasSizeOf(const SegmentContent& content, const SegmentRecord& record) const;
  // An error, or a report if damage is passed over.
  Status Lost(SegmentId id, const Status& cause);
  // Makes the local file. kNotFound if the tails do not have all bytes, or if one was removed.
  Status FromTails(SegmentId id, uint64_t length);
  Status FromObject(const SegmentContent& content, uint64_t length);
  Status Hide(SegmentId id);
  Result<std::unique_ptr<File>> NewFile(SegmentId id);
  Status Finish(SegmentId id, File& file);

  Env& env_;
  ObjectStore& objects_;
  const RestoreStoreOptions& options_;
  const RestoredState& state_;
  std::map<SegmentId, std::vector<uint64_t>> tails_;  // offsets, ascending
  std::map<SegmentId, uint64_t> intended_;            // lengths of replacements
  EpochFloors floors_;
  // The newest of each segment, without those of fenced writers.
  std::map<SegmentId, SegmentContent> contents_;
  std::map<SegmentId, SegmentContent> foreign_;  // those of fenced writers
};

}  // namespace siltfs
