// Writes the records of the inodes of a clone, which are hidden until the clone is finished.
//
// Numbers come from ranges that belong to this writer alone. The record of a range is in the same
// batch as the first record of its inodes. So after a crash each hidden inode lies in a recorded
// range. Batches are written directly to the key-value store (CommitPort::WriteThrough), because
// operations do not use the keys of hidden inodes. A thread writes a batch while the caller makes
// the next one.
//
// Not thread-safe: it belongs to one clone. Memory: two batches. Errors: those of WriteThrough and
// IdAllocator; kNoSpace if the disk is nearly full. A failed write is returned by a later call.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "fs/inodes/change.h"
#include "fs/inodes/hidden_inodes.h"
#include "fs/inodes/store_context.h"
#include "fs/meta/id_allocator.h"

namespace siltfs {

class HiddenWriter {
 public:
  // The arguments must outlive it.
  HiddenWriter(const StoreContext& store, IdAllocator& ids, HiddenInodes& hidden)
      : store_(store), ids_(ids), hidden_(hidden) {}
  // Removes all that was written, unless Publish was called. If this fails, the next mount does it.
  ~HiddenWriter();
  HiddenWriter(const HiddenWriter&) = delete;
  HiddenWriter& operator=(const HiddenWriter&) = delete;

  // A number for a new inode.
  Result<uint64_t> NextNumber();
  void Put(std::string key, std::string value);
  void Remove(std::string key);
  // Whether the caller should call Flush.
  bool IsFull() const { return bytes_ >= kBatchBytes; }
  // Begins to write the batch.
  Status Flush();
  // Writes the batch; all records are durable on return.
  Status FlushAndWait();

  // The key of a link record of this clone. Call it after NextNumber.
  std::string LinkKey(uint64_t inode) const;
  // All link records of this clone. It does not include records in the batch.
  KeyRange LinkKeys() const;
  std::shared_ptr<const KvSnapshot> Written() const {
    return store_.metadata().CommittedSnapshot();
  }

  const std::vector<HiddenRange>& ranges() const { return ranges_; }
  // Adds to the change what makes the inodes visible. FlushAndWait must have been called.
  void AddPublication(Change& change) const;
  // Call it after this change was applied, and before any thread can find the new name.
  void Publish();

 private:
  static constexpr size_t kBatchBytes = 1u << 20;

  Status WaitForWrite();
  void RemoveAll();

  const StoreContext& store_;
  IdAllocator& ids_;
  HiddenInodes& hidden_;
  std::vector<HiddenRange> ranges_;
  uint64_t next_ = 0;  // number
  std::vector<Mutation> batch_;
  size_t bytes_ = 0;  // of the batch
  std::thread thread_;
  std::vector<Mutation> writing_;  // used by thread_ until it has ended
  Status written_;                 // as well
  bool published_ = false;
};

}  // namespace siltfs
