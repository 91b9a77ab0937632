// The parts of a BucketSegmentStore, which its readers share: the table of segments, the readers,
// and the parts that work on the local directory and the bucket. An inner part of
// bucket_segment_store.h; it has the same contract.
//
// Locks, outer ones first: load_mutex_, mutex_, then those of BlockFetcher, Uploader and
// ObjectRemover, then that of LocalCache. Gates are called with the locks of Uploader or
// ObjectRemover.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/bucket/block_fetcher.h"
#include "store/bucket/bucket_catalog.h"
#include "store/bucket/bucket_options.h"
#include "store/bucket/bucket_status.h"
#include "store/bucket/local_cache.h"
#include "store/bucket/object_remover.h"
#include "store/bucket/segment_table.h"
#include "store/bucket/stop_signal.h"
#include "store/bucket/uploader.h"
#include "store/segment/segment_listing.h"
#include "store/segment/segment_source.h"

namespace siltfs {

class BucketCore {
 public:
  BucketCore(Env& env, ObjectStore& objects, BucketOptions options);

  const std::string& name() const { return name_; }
  std::string NameOf(SegmentId id) const;
  LocalCache& cache() { return cache_; }
  BlockFetcher& fetcher() { return fetcher_; }

  // --- SegmentStore.
  // The current content, with a reader more. kNotFound.
  Result<SegmentContent> AddReader(SegmentId id);
  // Adds a reader of this content, whether it is the current one or not.
  void AddReaderOf(const ContentId& id);
  void RemoveReader(const ContentId& id);
  // `must_match`: the segment must not exist, or have the same content.
  Status Put(SegmentId id, const SegmentSource& source, bool must_match);
  Status Remove(SegmentId id);
  Result<SegmentListing> List();
  // Goes on with what earlier runs have left.
  Status Resume();

  // --- BucketSegmentStore.
  std::optional<SegmentContent> Current(SegmentId id) const { return Find(id); }
  Result<std::vector<SegmentContent>> ContentsOf(SegmentId id);
  void Adopt(const SegmentContent& content);
  void Release(SegmentId id);
  Status WaitForUploads(std::chrono::nanoseconds timeout);
  bool IsUploaded(SegmentId id);
  void GateMoved();
  void DeleteDue(std::chrono::nanoseconds timeout) { remover_.DeleteDue(timeout); }
  Status RunBackground();
  void Interrupt();
  void Close();
  BucketStatus GetStatus() const;

 private:
  Status Load() SILTFS_EXCLUDES(load_mutex_, mutex_);
  Status PrepareChange();  // Load, Resume, and the directories
  std::optional<SegmentContent> Find(SegmentId id) const;
  bool HasReaders(const ContentId& id) const;
  bool InUse(const ContentId& id) const;
  uint64_t Position() const;

  Result<uint32_t> SizeOf(SegmentId id, const SegmentSource& source) const;
  Result<bool> IsSame(const SegmentContent& held, const SegmentSource& source);
  Status Reserve(SegmentId id, uint32_t size);
  Result<ContentId> NewContent(SegmentId id);
  // Renames the source, and makes it the current content. Returns the old one.
  Result<std::optional<SegmentContent>> TakeOver(const SegmentContent& content,
                                                 const SegmentSource& source);
  // The content is no longer current, and this is durable.
  void Retire(const ContentId& id, Uploader::Sent sent, uint64_t position);

  Env& env_;
  ObjectStore& objects_;
  const BucketOptions options_;
  const std::string name_;
  StopSignal stop_;
  LocalCache cache_;
  BlockFetcher fetcher_;

  Mutex load_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held while the bucket is listed
  bool loaded_ SILTFS_GUARDED_BY(load_mutex_) = false;
  bool resumed_ SILTFS_GUARDED_BY(load_mutex_) = false;
  BucketCatalog left_ SILTFS_GUARDED_BY(load_mutex_);  // what Resume goes on with

  mutable Mutex mutex_;
  SegmentTable table_ SILTFS_GUARDED_BY(mutex_);
  std::map<ContentId, uint32_t> readers_ SILTFS_GUARDED_BY(mutex_);
  // Contents with readers that are no longer needed otherwise. Their last reader drops their files.
  std::set<ContentId> retired_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::string> strays_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_generation_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool was_empty_ SILTFS_GUARDED_BY(mutex_) = true;
  // Contents that an earlier run has left waiting, until Resume gives them to the uploader.
  uint64_t left_waiting_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t left_waiting_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;

  Uploader uploader_;
  ObjectRemover remover_;
};

}  // namespace siltfs
