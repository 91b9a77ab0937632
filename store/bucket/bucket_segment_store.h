// A SegmentStore whose segments end as immutable objects in a bucket, with the local disk as a
// cache (docs/bucket.md). It is the place of sealed segments below a StagedSegmentStore.
//
//   Put       renames the source into the local directory, where it is durable. The segment is then
//             uploaded in the background. When the bucket has it, its file is part of the cache.
//   Replace   the same for a new content, which has a key of its own. The old object is deleted
//             after the upload of the new one.
//   Remove    makes a tombstone. The objects are deleted later.
//   Open      needs no request. Reads come from the local disk or, block by block, from the bucket.
//
// A full cache: Put and Replace wait while the local directory is full of segments that wait for
// their upload. kNoSpace after BucketOptions::room_timeout: nothing was changed.
//
// A bucket that fails: reads return kIoError after BucketOptions::bucket_timeout, and a later read
// succeeds if the bucket answers again. Put, Replace and Remove need no answer of the bucket. The
// first call needs the bucket's list.
//
// Readers: a content that was replaced or removed is not deleted before its last reader is
// destroyed. Readers that outlive the store go on reading, but no longer fill the cache; another
// store that is opened meanwhile may delete the objects that they need.
//
// Durability: Put, Replace and Remove survive a crash of this machine with its disk. Without the
// disk, only the segments that the bucket has survive: WaitForUploads, and Status().
//
// Thread-safety and errors: segment_store.h. Ownership: `env`, `objects` and the gate must outlive
// the store and its readers. The destructor ends the threads; it waits for their running requests,
// so ObjectStore::Interrupt before it makes it fast. No call may be running then.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/bucket/bucket_options.h"
#include "store/bucket/bucket_status.h"
#include "store/bucket/segment_content.h"
#include "store/object/object_store.h"
#include "store/segment/segment_store.h"

namespace siltfs {

class BucketCore;

class BucketSegmentStore final : public SegmentStore {
 public:
  BucketSegmentStore(Env& env, ObjectStore& objects, BucketOptions options);
  ~BucketSegmentStore() override;

  const std::string& name() const override;
  std::string NameOf(SegmentId id) const override;
  std::optional<SegmentId> IdOf(std::string_view name) const override;
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override;
  uint64_t UnansweredReads() const override;
  Status Put(SegmentId id, const SegmentSource& source) override;
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;
  std::optional<uint32_t> EpochOf(SegmentId id) override;
  Result<SegmentListing> List() override;
  // Also starts the uploads and deletions that an earlier run has left. The directories of the
  // sources must have been synced before, as StagedSegmentStore does: a rename between two
  // directories is durable when both are synced.
  Result<SegmentListing> Recover() override;
  // Does the same as Recover.
  Status FinishPuts(const std::function<bool(SegmentId)>& is_sealed) override;

  // Returns when the bucket has all segments that were put before the call. kIoError, with the last
  // failure, after `timeout`, or when the store is closed.
  Status WaitForUploads(std::chrono::nanoseconds timeout);
  // Whether the bucket has the current content of this segment; also true if there is no such
  // segment. False if this cannot be known, because the bucket's list cannot be read. While Put
  // runs, a segment is neither a file of its caller nor uploaded.
  bool IsUploaded(SegmentId id) const;
  // The gate may let more changes pass.
  void GateMoved();
  // Deletes the objects that may be deleted now. Returns after `timeout` at the latest; without
  // threads, when it has tried to delete them.
  void DeleteDue(std::chrono::nanoseconds timeout);
  // Without upload threads: makes one attempt for each content that waits, and deletes what may be
  // deleted, in the calling thread. Returns the first failure of a deletion.
  Status RunBackground();

  // --- For a store that reads what a writer on another machine puts. The table of segments is that
  // of the first call; these calls keep it up to date.

  // The current content of the segment, as far as this store knows. No request.
  std::optional<SegmentContent> Current(SegmentId id) const;
  // The contents that the bucket has now, the one with the highest generation first.
  Result<std::vector<SegmentContent>> ContentsOf(SegmentId id);
  // This content is the current one from now on.
  void Adopt(const SegmentContent& content);
  // The segment is no longer needed: nothing is read of it any more, but by readers that exist.
  void Release(SegmentId id);
  // Opens this content, whether it is the current one or not.
  std::unique_ptr<const ReadableFile> OpenContent(const SegmentContent& content);

  // Ends calls that wait, and the work in the background; for the end of the process. Put and
  // Replace that wait for room return kIoError.
  void Interrupt();

  BucketStatus GetStatus() const;

 private:
  const std::shared_ptr<BucketCore> core_;
};

}  // namespace siltfs
