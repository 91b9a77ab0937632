// Inodes in memory: one object per inode in use, with the lock that serialises its operations. The
// most recently used inodes stay loaded.
//
// Thread-safety: every call from any thread. Ownership: shared. The table releases inodes that have
// no other owner and are not open, least recently used first.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fs/content/overlay.h"
#include "fs/inodes/known_names.h"
#include "fs/inodes/write_sequencer.h"
#include "fs/interface/file_system.h"
#include "fs/interface/posix_acl.h"
#include "fs/records/inode_record.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// A file's share of the store-wide totals.
struct ContentTally {
  explicit ContentTally(const InodeRecord& record);
  int64_t allocated;   // bytes
  int64_t references;  // to chunks
};

// Deferred changes of a file: accepted in memory, not yet in metadata (change_applier.h).
struct InodeChanges {
  uint64_t commit;      // the commit that they belong to
  ContentTally before;  // the tally in metadata
  uint64_t bytes = 0;   // of mutations, approximate
  int64_t grown = 0;    // what Quotas counts for them
};

// A reader-writer lock in which readers cannot starve a writer: readers that come while a writer
// waits get the lock only after this writer. (A std::shared_mutex may admit new readers as long as
// any reader holds it. A commit locks the dirty files, so steady readers of one file could delay
// every sync without limit.) Not recursive, not even for readers.
class SILTFS_CAPABILITY("mutex") InodeMutex {
 public:
  void Lock() SILTFS_ACQUIRE() SILTFS_NO_THREAD_SAFETY_ANALYSIS {
    const MutexLock entrance(entrance_);
    mutex_.Lock();
  }
  void Unlock() SILTFS_RELEASE() SILTFS_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }
  void LockShared() SILTFS_ACQUIRE_SHARED() SILTFS_NO_THREAD_SAFETY_ANALYSIS {
    const MutexLock entrance(entrance_);
    mutex_.LockShared();
  }
  void UnlockShared() SILTFS_RELEASE_GENERIC() SILTFS_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.UnlockShared();
  }

 private:
  Mutex entrance_;  // held by a writer as long as it waits for the readers in front of it
  SharedMutex mutex_;
};

struct Inode : std::enable_shared_from_this<Inode> {
  explicit Inode(InodeNumber n) : number(n) {}

  const InodeNumber number;
  // Lock order: several inodes are locked in the order of their numbers (InodeLock). They are
  // locked before any other lock of the core, except the rename lock and the write sequencer.
  InodeMutex mutex;
  // Entered before `mutex`, by writes only.
  WriteSequencer write_sequencer;

  // Guarded by mutex.
  bool loaded = false;          // the fields below equal metadata, or are newer if `deferred`
  bool overlay_loaded = false;  // the overlay, too
  InodeRecord record;
  Overlay overlay;
  // Set only for a regular file whose record and overlay are both loaded.
  std::optional<InodeChanges> deferred;
  // The default list of a directory with extended attributes: nullopt until it is first read, null
  // if there is none.
  std::optional<std::shared_ptr<const PosixAcl>> default_acl;
  // All names in a directory that was made since the store was opened; nullopt if they are not
  // known. Names get into metadata through this object alone (DirectoryNames::PutName).
  std::optional<KnownNames> names;
  std::atomic<uint32_t> open_count = 0;  // written under mutex, read by the table without it
  // The number of the commit that includes the last change made through this object.
  uint64_t last_apply = 0;
  int64_t last_write = 0;  // monotonic nanoseconds
  uint64_t fold_from = 0;  // where the next FoldSome continues
  // Approximate raw bytes in the overlay that were written by operations of commit `fresh_commit`.
  uint64_t fresh_commit = 0;
  uint64_t fresh_raw_bytes = 0;
  bool no_capability = false;  // known to have no security.capability among its xattrs
  bool times_replied = false;  // the kernel's write cache has set the times since the file was
                               // opened
  bool linkable = false;       // made without a name; Link may name it while it is open

  // Call it if the state in memory may differ from metadata: the next use loads it again.
  void Invalidate() {
    loaded = false;
    default_acl.reset();
    names.reset();
    no_capability = false;
    DropOverlay();
  }
  // Call it only if `deferred` is not set: metadata then has the overlay, too, and the copy in
  // memory only saves time.
  void DropOverlay() {
    overlay_loaded = false;
    overlay = Overlay();
  }
};
using InodePtr = std::shared_ptr<Inode>;

class InodeTable {
 public:
  explicit InodeTable(size_t capacity) : capacity_(capacity) {}

  // The one object of this inode, loaded or not.
  InodePtr Get(InodeNumber number);
  // All inodes in the table at this moment.
  std::vector<InodePtr> Snapshot() const;
  // Forgets a removed inode.
  void Erase(InodeNumber number);

 private:
  struct Slot {
    InodePtr inode;
    std::list<InodeNumber>::iterator recent;
  };
  void Shrink() SILTFS_REQUIRES(mutex_);

  const size_t capacity_;
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, Slot> slots_ SILTFS_GUARDED_BY(mutex_);
  std::list<InodeNumber> recent_ SILTFS_GUARDED_BY(mutex_);  // most recently used first
};

// Locks one or several inodes, each once, in the order of their numbers.
class InodeLock {
 public:
  enum class Mode : uint8_t { kShared, kExclusive };
  InodeLock(std::vector<InodePtr> inodes, Mode mode);
  InodeLock(InodePtr inode, Mode mode) : InodeLock(std::vector<InodePtr>{std::move(inode)}, mode) {}
  ~InodeLock();
  InodeLock(const InodeLock&) = delete;
  InodeLock& operator=(const InodeLock&) = delete;

 private:
  std::vector<InodePtr> inodes_;
  const Mode mode_;
};

}  // namespace siltfs
