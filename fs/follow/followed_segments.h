// The segments of a store whose writer is another machine (followed_store.h).
//
//   metadata says   where the bytes are
//   sealed          the object in the bucket, with a cache on the local disk
//   open            DIRECTORY/segments: the committed bytes, from the tails (segment_tails.h)
//
// A segment that is sealed, and that the writer has not uploaded yet, is a local file, too.
//
// Several states of the store may be open at a time. Each has a view. A segment is replaced at most
// once, by a content with the same chunks at other places. A view that was made before goes on with
// the old content, because its state knows the places of that content.
//
// Bring prepares a state; it does not disturb open views. Commit then makes it the state of views
// that are made later.
//
// Thread-safety: views from any thread; all other calls from one thread at a time. Ownership:
// `env`, `objects` and `bucket` must outlive the segments and all views. Memory: about 100 bytes
// for each open segment. Errors: those of Env and ObjectStore; kNotFound if the bucket does not
// have the bytes (any more): the log has a newer state then, or will have one. Durability: none.
// Everything is fetched again by the next mount.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/records/segment_record.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/env/env.h"
#include "store/object/object_store.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// The segments as one state sees them.
class SegmentView final : public SegmentStore {
 public:
  SegmentView(DirectorySegmentStore& local, BucketSegmentStore& bucket)
      : local_(local), bucket_(bucket) {}

  // The view goes on with this content of a segment that is being replaced.
  void Freeze(const SegmentContent& content) SILTFS_EXCLUDES(mutex_);

  const std::string& name() const override { return bucket_.name(); }
  std::string NameOf(SegmentId id) const override { return bucket_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override { return bucket_.IdOf(name); }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override SILTFS_EXCLUDES(mutex_);
  uint64_t UnansweredReads() const override { return bucket_.UnansweredReads(); }
  Result<SegmentListing> List() override;
  Result<SegmentListing> Recover() override { return List(); }
  Status Put(SegmentId id, const SegmentSource& source) override;
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;

 private:
  Status ReadOnly() const;

  DirectorySegmentStore& local_;
  BucketSegmentStore& bucket_;
  Mutex mutex_;
  std::map<SegmentId, SegmentContent> frozen_ SILTFS_GUARDED_BY(mutex_);
};

class FollowedSegments {
 public:
  FollowedSegments(Env& env, ObjectStore& objects, std::string directory,
                   BucketSegmentStore& bucket);

  // Empties the local directory, and lists the bucket.
  Status Begin();
  // Brings the bytes that this record states. `epoch`: of the writer of this state.
  Status Bring(SegmentId id, const SegmentRecord& record, uint32_t epoch);
  // What was brought since the last call is the present state.
  Status Commit();
  std::shared_ptr<SegmentView> NewView();
  // No open state has this segment.
  Status Forget(SegmentId id);
  // Local bytes of segments that are not in the bucket's cache.
  uint64_t local_bytes() const;

 private:
  Status BringSealed(SegmentId id, const SegmentRecord& record, uint32_t epoch);
  // Makes the local file at least this long.
  Status BringLocal(SegmentId id, uint64_t length, uint32_t epoch);
  Status ExtendFromTails(SegmentId id, File& file, uint64_t length, uint32_t epoch);
  Status ExtendFromObject(SegmentId id, File& file, uint64_t length);
  Status RemoveLocal(SegmentId id);

  Env& env_;
  ObjectStore& objects_;
  const std::string directory_;
  BucketSegmentStore& bucket_;
  DirectorySegmentStore local_;
  std::map<SegmentId, uint64_t> local_sizes_;     // of the local files
  std::map<SegmentId, SegmentContent> switches_;  // replacements that Commit makes
  std::vector<SegmentId> uploaded_;               // local files that Commit removes
  std::vector<std::weak_ptr<SegmentView>> views_;
};

}  // namespace siltfs
