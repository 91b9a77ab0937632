// The segment guide: says which segments may hold a chunk, without the index. It is a SliceBloom
// (index/slice_bloom/slice_bloom.h) of the names in sealed segments, kept in the store's directory.
//
// Use it to search chunks that the index has lost, or while the index is being rebuilt: a search
// then reads a few footers instead of all. It is never authoritative. The caller confirms a chunk
// in the segment, and searches all segments before it declares a chunk missing.
//
// Segments that the guide does not cover yet are *waiting*. Those that it cannot cover, because
// they are not sealed or cannot be read, are uncovered as well; Find returns both, and they must be
// searched in any case.
//
// The guide is a cache of the footers. If its files are damaged, a writable guide begins again with
// empty ones, and all segments are waiting. If the disk fails or is full, it covers fewer segments.
// So no call of the guide makes a mount or a write fail.
//
// Thread-safety: Find and stats from any thread; NoteSealed, too. The other calls must come from
// one thread at a time. Ownership: `env` must outlive it. Memory: 12 bytes for each segment, and
// that of SliceBloom. Durability: that of SliceBloom; Close makes everything durable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fs/records/segment_record.h"
#include "index/slice_bloom/slice_bloom.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

struct SegmentGuideStats {
  SliceBloomStats filters;
  uint64_t uncovered = 0;  // segments
  uint64_t lookups = 0;    // names, since the guide was opened
};

class SegmentGuide {
 public:
  struct Options {
    std::string directory;   // is made if it is missing, unless read_only
    bool read_only = false;  // then segments stay uncovered
    // Called with a sentence about damage or a failure that limits the guide. May be empty.
    std::function<void(const std::string&)> report;
    SliceBloomOptions filters = {};  // the directory is ignored
  };
  // `records`: the segments of the store. Segments that are not among them leave the guide.
  static std::unique_ptr<SegmentGuide> Open(Env& env, Options options,
                                            const SegmentRecords& records);
  ~SegmentGuide();
  SegmentGuide(const SegmentGuide&) = delete;
  SegmentGuide& operator=(const SegmentGuide&) = delete;

  // False if the guide's files cannot be used. Then Find fails, and all segments are uncovered.
  bool usable() const { return filters_ != nullptr; }

  // segments[i]: the covered segments that may have names[i] (ChunkName::Prefix64). Names in
  // covered segments are never missing there, unless a file of the guide is damaged unnoticed.
  // `uncovered`: all segments that the guide does not cover and knows of. kNotFound if the guide is
  // not usable; errors of SliceBloom.
  Status Find(std::span<const uint64_t> names, std::vector<std::vector<SegmentId>>& segments,
              std::vector<SegmentId>& uncovered) SILTFS_EXCLUDES(mutex_);

  bool Covers(SegmentId segment) const { return usable() && filters_->Covers(segment); }
  // A segment was sealed. It waits from now on.
  void NoteSealed(SegmentId segment) SILTFS_EXCLUDES(mutex_);
  // The waiting segment with the lowest id; kNoSegment if there is none. None waits if the guide is
  // read-only or not usable.
  SegmentId NextWaiting() const SILTFS_EXCLUDES(mutex_);
  // Covers a waiting segment: enters the name prefixes of all its chunks. kNoSpace: the segment
  // waits on. After any other error the guide covers no more segments.
  Status Cover(SegmentId segment, std::span<const uint64_t> names) SILTFS_EXCLUDES(mutex_);
  // The segment cannot be covered; it does not wait any more.
  void GiveUp(SegmentId segment) SILTFS_EXCLUDES(mutex_);
  // Drops the segments that are gone. Lets segments wait again whose groups have few segments left,
  // so that the files of these groups become free.
  Status DropGone(const std::function<bool(SegmentId)>& gone) SILTFS_EXCLUDES(mutex_);

  Status Verify(const std::function<void(const std::string&)>& report);
  SegmentGuideStats stats() const SILTFS_EXCLUDES(mutex_);
  // Makes everything durable. Only stats may be called afterwards.
  Status Close();

 private:
  explicit SegmentGuide(Options options);
  Status OpenFilters(Env& env);
  void Report(const std::string& sentence) const;
  // Ends covering after an error other than kNoSpace.
  Status Limit(Status status) SILTFS_EXCLUDES(mutex_);

  const Options options_;
  std::unique_ptr<SliceBloom> filters_;
  std::atomic<uint64_t> lookups_{0};

  mutable Mutex mutex_;
  // All segments that are not covered, and whether they wait.
  std::map<SegmentId, bool> uncovered_ SILTFS_GUARDED_BY(mutex_);
  bool limited_ SILTFS_GUARDED_BY(mutex_) = false;  // no more segments are covered
};

}  // namespace siltfs
