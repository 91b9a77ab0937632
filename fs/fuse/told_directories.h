// Who may have a reply under way that tells a directory's attributes.
//
// The kernel believes what it was told for a day. But a reply is applied when the thread that asked
// gets to run: perhaps after a change of the directory that another thread asked for later and was
// answered earlier. The change marks what the kernel knows as old, the late reply marks it as known
// again, and the old links and times are shown for a day. What helps is a notification that the
// inode's attributes are no longer valid: the kernel then applies no reply to a request sent before
// it. It also takes a system call and may make the kernel ask for more than it would have, so it is
// not sent with every change but only where somebody else may have been told since the last one; a
// single program that fills a directory causes none.
//
// Whoever reads attributes to tell them notes it first, and reads afterwards; whoever changes the
// directory asks afterwards, and notifies before the change is answered. So either the reader is
// found here, or it has read the new attributes. That a reader is noted between the question and
// the notification is no harm: it had asked before the notification, too.
//
// What changes with a directory's entries is meant. Left out is the ctime of a directory that is
// itself moved or given an extended attribute: a late reply may bring back its old ctime. Other
// changes of an inode (SETATTR, LINK, the loss of a name) make the kernel refuse older replies by
// themselves.
//
// The table has a fixed size and one directory a slot, so that it forgets; what is not known counts
// as told to several. Memory: 64 KiB. Thread-safety: every call from any thread.
#pragma once

#include <sys/types.h>

#include <array>

#include "fs/core/file_system.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

class ToldDirectories {
 public:
  // The thread of a request as the kernel names it: a thread gets each of its replies before it
  // asks for anything else. Those outside of the daemon's namespace of processes have no name.
  using Thread = pid_t;
  static constexpr Thread kUnknownThread = 0;

  // To be called before the attributes are read that `thread` is told. An unknown thread counts as
  // several.
  void NoteTold(InodeNumber directory, Thread thread);
  // `thread` is told of a directory it made: nobody can have been told of it before.
  void NoteMade(InodeNumber directory, Thread thread);
  // Whether anybody but `thread`, which has changed the directory, may have been told of it since
  // this was last true. Then the kernel is to be notified, and if that fails, the directory noted
  // as told to an unknown thread.
  [[nodiscard]] bool TakeOthers(InodeNumber directory, Thread thread);

 private:
  static constexpr int kSlotBits = 12;
  static constexpr Thread kSeveral = kUnknownThread;
  static constexpr Thread kNobody = -1;

  struct Slot {
    InodeNumber directory = 0;  // none yet
    Thread told = kNobody;
  };

  Slot& SlotOf(InodeNumber directory) SILTFS_REQUIRES(mutex_);

  Mutex mutex_;  // held for a few instructions
  std::array<Slot, size_t{1} << kSlotBits> slots_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::fuse
