// The local disk of a BucketSegmentStore: contents that wait for their upload, and a cache of the
// contents in the bucket. It never holds more than its limit, except for contents that had to be
// taken although nothing could be evicted.
//
// A file is one of these (bucket_names.h):
//   - a waiting content: the segment's file, as Put has taken it over. It is durable, is read in
//   any
//     range, and is never evicted.
//   - an image: a sparse file with some blocks of an object at their offsets in the object, and
//     perhaps the object's trailer. Nothing of it is ever synced. When a content has been uploaded,
//     its file becomes an image with all blocks.
//   - a detached content: it was removed before its upload, but has readers. Its file has no name
//     any more.
//
// A restart keeps the images. Which of their blocks are intact is then unknown: each block is
// verified when it is used for the first time, with the checksums of the trailer. So a hole, or a
// block that a power cut or a bad disk has damaged, is fetched again and never returned.
//
// Eviction: files as a whole, so that the disk gets the space back, by a segmented LRU. A file
// whose blocks are read for the first time stays in the probationary list, so that one restore does
// not evict everything else. A block that is read a second time makes its file protected. Protected
// files take at most 4/5 of the limit.
//
// Memory: about 300 bytes for each file, and at most `files` files; 128 files are open.
//
// Thread-safety: every call from any thread. Errors: Env's. A cache that cannot be written is no
// error: blocks are then fetched each time.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_object.h"
#include "store/env/env.h"

namespace siltfs {

struct LocalCacheCounters {
  uint64_t used_bytes = 0;  // with the contents that wait for their upload
  uint64_t limit_bytes = 0;
  uint64_t files = 0;
  uint64_t hits = 0;        // blocks that readers found here
  uint64_t misses = 0;      // blocks that readers did not find here
  uint64_t evictions = 0;   // files
  uint64_t refusals = 0;    // fills without room, or that the disk has failed
  uint64_t bad_blocks = 0;  // blocks of an earlier run that were missing or damaged
  uint64_t waits = 0;       // how often a Reserve found no room, after one that had found room
  bool full = false;        // the last Reserve has found no room
};

class LocalCache {
 public:
  struct Limits {
    uint64_t bytes = 0;
    uint32_t files = 0;
  };
  enum class Presence : uint8_t { kAbsent, kUnverified, kPresent };
  struct Hit {
    Presence presence = Presence::kAbsent;
    bool whole = false;          // all bytes of the segment can be read from the file
    std::shared_ptr<File> file;  // null if absent
  };

  // Opens nothing. `env` must outlive this object.
  LocalCache(Env& env, std::string directory, Limits limits);
  ~LocalCache();

  // --- At the start: files that an earlier run has left.
  void AdoptWaiting(const SegmentContent& content);
  // `bytes`: the space that the image takes.
  void AdoptImage(const SegmentContent& content, uint64_t bytes);

  // --- Room.
  // Sets space aside for a content that is going to wait for its upload. Evicts images first. If
  // this is not enough, waits until uploads have made room, at most for `timeout` and until Close.
  // kNoSpace, kIoError after Close. If no content waits for its upload, succeeds in any case.
  Status Reserve(uint64_t bytes, std::chrono::nanoseconds timeout);
  void Unreserve(uint64_t bytes);

  // --- Contents that wait for their upload.
  // The content has a file now, for which `content.size` bytes were reserved.
  void AddWaiting(const SegmentContent& content);
  Result<std::shared_ptr<File>> OpenWaiting(const ContentId& id);
  // The content is in the bucket: it becomes an image. If this fails, it goes on waiting.
  Status MarkUploaded(const ContentId& id, const std::string& trailer);

  // Removes the file of a content. OK if there is none. Not durable.
  Status Drop(const ContentId& id);
  // Removes only the name of a waiting content; readers go on reading it until Drop.
  Status Detach(const ContentId& id);

  // --- Blocks.
  // For a reader. `again`: this reader has just read the same block, so it is no second use.
  Result<Hit> Use(const SegmentContent& content, uint32_t block, bool again);
  // Notes a use of a block that Use did not find, after it was fetched.
  void NoteUse(const ContentId& id, uint32_t block);
  // The same as Use, but not counted as a use. Never fails.
  Hit Find(const SegmentContent& content, uint32_t block);
  // After a block of kind kUnverified was read and compared with its checksum.
  void MarkVerified(const ContentId& id, uint32_t block, bool intact);
  // Keeps verified blocks from `first` on, if there is room.
  void Store(const SegmentContent& content, uint32_t first, ByteView bytes);
  void StoreTrailer(const SegmentContent& content, ByteView trailer);
  // Whether the content's image has its trailer, or can have none. False after a restart.
  bool HasTrailer(const ContentId& id);

  // Whether a fill of this size has a chance.
  bool CanTake(uint64_t bytes) const;

  // From now on, nothing is stored or evicted, and Reserve fails. Readers may go on.
  void Close();
  LocalCacheCounters Counters() const;

 private:
  enum class State : uint8_t { kWaiting, kImage, kDetached, kLeaving };
  struct Unit;
  using Order = std::list<Unit*>;  // most recently used first

  Unit* FindUnit(const ContentId& id) SILTFS_REQUIRES(mutex_);
  Unit& AddUnit(const SegmentContent& content, State state, uint64_t bytes) SILTFS_REQUIRES(mutex_);
  void EraseUnit(Unit& unit) SILTFS_REQUIRES(mutex_);
  std::string PathOf(const Unit& unit) const;
  Hit HitOf(Unit& unit, uint32_t block) SILTFS_REQUIRES(mutex_);
  Status OpenUnit(Unit& unit) SILTFS_REQUIRES(mutex_);
  void CloseUnit(Unit& unit) SILTFS_REQUIRES(mutex_);
  Status RemoveUnit(Unit& unit) SILTFS_REQUIRES(mutex_);  // unlocks the mutex meanwhile

  void Enter(Unit& unit, bool is_protected) SILTFS_REQUIRES(mutex_);
  void Leave(Unit& unit) SILTFS_REQUIRES(mutex_);
  void Touch(Unit& unit, uint32_t block) SILTFS_REQUIRES(mutex_);
  void ShrinkProtected() SILTFS_REQUIRES(mutex_);
  void Grow(Unit& unit, uint64_t bytes) SILTFS_REQUIRES(mutex_);
  Unit* Victim(const Unit* keep) SILTFS_REQUIRES(mutex_);
  // Evicts until there is room for these bytes, and for a further file if `file`. Unlocks the mutex
  // meanwhile. `keep` is not evicted.
  bool MakeRoom(uint64_t bytes, bool file, const Unit* keep) SILTFS_REQUIRES(mutex_);
  // The image that takes these bytes, which are counted now; it is busy. Null: no room.
  Unit* BeginFill(const SegmentContent& content, uint64_t bytes, std::shared_ptr<File>& file)
      SILTFS_REQUIRES(mutex_);
  void Fill(const SegmentContent& content, uint64_t offset, ByteView bytes, uint32_t first_block,
            uint32_t blocks);

  Env& env_;
  const std::string directory_;
  const Limits limits_;
  mutable Mutex mutex_;  // the innermost lock of store/bucket
  CondVar changed_;      // there may be room; a unit has left
  std::unordered_map<ContentId, std::unique_ptr<Unit>> units_ SILTFS_GUARDED_BY(mutex_);
  Order probation_ SILTFS_GUARDED_BY(mutex_);
  Order protected_ SILTFS_GUARDED_BY(mutex_);
  Order open_ SILTFS_GUARDED_BY(mutex_);  // with open files, except detached ones
  uint64_t protected_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t pinned_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;  // reserved, waiting or detached
  uint32_t waiting_reserves_ SILTFS_GUARDED_BY(mutex_) = 0;
  LocalCacheCounters counters_ SILTFS_GUARDED_BY(mutex_);
  bool closed_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
