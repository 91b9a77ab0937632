#include "fs/fuse/attribute_reply_tracker.h"

namespace siltfs::fuse {

AttributeReplyTracker::Slot& AttributeReplyTracker::SlotOf(InodeNumber directory) {
  // Fibonacci hashing: consecutive numbers, as in a new tree, get slots far apart.
  return slots_[(directory * 0x9E37'79B9'7F4A'7C15U) >> (64 - kSlotBits)];
}

void AttributeReplyTracker::NoteReply(InodeNumber directory, Thread thread) {
  const MutexLock lock(mutex_);
  Slot& slot = SlotOf(directory);
  if (slot.directory == 0 || (slot.directory == directory && slot.told == kNobody)) {
    slot = {directory, thread};
  } else if (slot.directory != directory || slot.told != thread) {
    slot = {directory, kSeveral};
  }
}

void AttributeReplyTracker::NoteMade(InodeNumber directory, Thread thread) {
  const MutexLock lock(mutex_);
  SlotOf(directory) = {directory, thread};
}

bool AttributeReplyTracker::TakeOthers(InodeNumber directory, Thread thread) {
  const MutexLock lock(mutex_);
  Slot& slot = SlotOf(directory);
  if (slot.directory == 0) return false;
  if (slot.directory == directory) {
    if (slot.told == kNobody) return false;
    if (slot.told == thread && thread != kUnknownThread) return false;
  }
  slot = {directory, kNobody};
  return true;
}

}  // namespace siltfs::fuse
