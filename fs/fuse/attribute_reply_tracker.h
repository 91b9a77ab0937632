// Tracks which threads may have a reply under way that carries a directory's attributes.
//
// The kernel caches attributes for a day. But it applies a reply only when the thread that sent the
// request gets to run. Before that, another thread may request a change and get its answer. The
// change marks the cached attributes as stale, but the late reply marks them as valid again. So
// programs would see the old number of links and the old times for a day. To prevent this, siltfs
// notifies the kernel that the inode's attributes are invalid: the kernel then ignores replies to
// requests that were sent before the notification. A notification costs a system call and may cause
// extra requests from the kernel. So it is sent only if another thread may have got a reply since
// the last notification. A single program that fills a directory causes none.
//
// Order of events: a handler that replies attributes first notes the reply and then reads the
// attributes. A handler that changes a directory first changes it, then calls TakeOthers, and
// notifies before it answers. So either TakeOthers finds the note of a reply, or the reply has the
// new attributes. A reply that is noted between TakeOthers and the notification does no harm: its
// request, too, was sent before the notification.
//
// The notifications cover changes of a directory's entries, but not the ctime of a directory that
// is itself moved or given an extended attribute: a late reply may bring back its old ctime. After
// other changes of an inode (SETATTR, LINK, the loss of a name) the kernel itself refuses older
// replies.
//
// The table has a fixed size and one directory per slot, so a directory may replace another one. A
// directory without a slot counts as if several threads had got replies. Memory: 64 KiB.
// Thread-safety: every call from any thread.
#pragma once

#include <sys/types.h>

#include <array>

#include "fs/interface/file_system.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

class AttributeReplyTracker {
 public:
  // The kernel's id for the requesting thread. A thread gets each of its replies before it sends
  // another request. Threads outside the daemon's pid namespace have no id.
  using Thread = pid_t;
  static constexpr Thread kUnknownThread = 0;

  // Call it before reading the attributes for a reply to `thread`. An unknown thread counts as
  // several threads.
  void NoteReply(InodeNumber directory, Thread thread);
  // Like NoteReply, for a directory that the request of this thread has made: no other thread can
  // have got a reply.
  void NoteMade(InodeNumber directory, Thread thread);
  // `thread` has changed the directory. Returns whether another thread may have got a reply since
  // this function last returned true. If so, the caller must notify the kernel. If the notification
  // fails, the caller must note a reply to an unknown thread.
  [[nodiscard]] bool TakeOthers(InodeNumber directory, Thread thread);

 private:
  static constexpr int kSlotBits = 12;
  static constexpr Thread kSeveral = kUnknownThread;
  static constexpr Thread kNobody = -1;

  struct Slot {
    InodeNumber directory = 0;  // 0: none yet
    Thread told = kNobody;
  };

  Slot& SlotOf(InodeNumber directory) SILTFS_REQUIRES(mutex_);

  Mutex mutex_;  // held for a few instructions
  std::array<Slot, size_t{1} << kSlotBits> slots_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::fuse
