// The owner of the data that an index's entries point to, if that data cannot be rebuilt without
// the entries.
//
// Entries of a chunk index are hints: an entry may outlive the data it points to. Entries of a
// key-value store are not hints, because they alone say which keys exist. So the data that an entry
// points to must be durable before the entry is. After a crash an entry counts only if its data
// exists.
//
// Thread-safety: MakeDurable is called by writing calls, one at a time; Holds by any thread that
// opens a partition of the index, several at a time.
#pragma once

#include "index/flash/slot.h"
#include "store/base/status.h"

namespace siltfs {

class EntryOwner {
 public:
  virtual ~EntryOwner() = default;
  // Makes the data of all entries put so far durable. Called before these entries become durable;
  // after an error they do not become durable.
  virtual Status MakeDurable() = 0;
  // Whether the data of an entry exists. Called for entries that were written before a crash but
  // are not known to be durable.
  virtual bool Holds(const SlotEntry& entry) = 0;
};

}  // namespace siltfs
