// Who keeps what the entries of an index point to, where that is not a truth of its own.
//
// Entries of a chunk index are hints: nobody minds if one outlives what it points to. In a
// key-value store they are the truth, so what they point to must be durable before they are, and
// after a crash an entry counts only if what it points to is there.
//
// Thread-safety: MakeDurable comes from calls that write, one at a time; Holds from any thread that
// opens a partition of the index, several at a time.
#pragma once

#include "index/silt/slot.h"
#include "store/base/status.h"

namespace siltfs {

class EntryOwner {
 public:
  virtual ~EntryOwner() = default;
  // Called before anything that was put so far is made durable for good. After an error it is not.
  virtual Status MakeDurable() = 0;
  // Whether what an entry points to is there; asked of those that were written, but not known to be
  // durable, when a crash came.
  virtual bool Holds(const SlotEntry& entry) = 0;
};

}  // namespace siltfs
