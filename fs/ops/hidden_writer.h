// Writes the records of the inodes of a clone, which are hidden until the clone is finished.
//
// Numbers come from ranges that belong to this writer alone. The record of a range is durable
// before a record of its inodes, or is in the same write. So after a crash each hidden inode lies
// in a recorded range. Batches are written directly to the key-value store, because operations do
// not use the keys of hidden inodes. If there are many records, they are loaded (KvLoad) and not
// written, which takes a fraction of the time. A thread writes a batch while the caller makes the
// next one.
//
// Not thread-safe: it belongs to one clone. Memory: two batches. Errors: those of MetadataStore and
// IdAllocator; kNoSpace if the disk is nearly full. A failed write is returned by a later call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fs/inodes/change.h"
#include "fs/inodes/hidden_inodes.h"
#include "fs/inodes/store_context.h"
#include "fs/meta/id_allocator.h"
#include "fs/ops/record_batch.h"

namespace siltfs {

class HiddenWriter {
 public:
  // The references must outlive it. `batch_bytes`: the size of a batch in memory.
  HiddenWriter(const StoreContext& store, IdAllocator& ids, HiddenInodes& hidden,
               size_t batch_bytes)
      : store_(store), ids_(ids), hidden_(hidden), batch_bytes_(batch_bytes) {}
  // Removes all that was written, unless Publish was called. If this fails, the next mount does it.
  ~HiddenWriter();
  HiddenWriter(const HiddenWriter&) = delete;
  HiddenWriter& operator=(const HiddenWriter&) = delete;

  // A number for a new inode.
  Result<uint64_t> NextNumber();
  // Puts a record of a new inode; each key at most once.
  void Put(std::string_view key, std::string_view value) { batch_.records.Add(key, value); }
  // Puts a record again that Put was called for.
  void Replace(std::string key, std::string value);
  // Puts and removes link records.
  void PutLink(uint64_t inode, std::string value);
  void RemoveLink(std::string key);
  // Whether the caller should call Flush.
  bool IsFull() const { return batch_.bytes() >= batch_bytes_; }
  // Begins to write the batch.
  Status Flush();
  // Writes the batch. On return, all link records can be read.
  Status FlushAndWait();
  // Writes the batch, and loads what is not loaded yet. On return, all records are durable.
  Status Finish();

  // The key of a link record of this clone. Call it after NextNumber.
  std::string LinkKey(uint64_t inode) const;
  // All link records of this clone. It does not include records in the batch.
  KeyRange LinkKeys() const;
  std::shared_ptr<const KvSnapshot> Written() const {
    return store_.metadata().CommittedSnapshot();
  }

  const std::vector<HiddenRange>& ranges() const { return ranges_; }
  // Adds to the change what makes the inodes visible. Finish must have been called.
  void AddPublication(Change& change) const;
  // Call it after this change was applied, and before any thread can find the new name.
  void Publish();

 private:
  struct Batch {
    std::vector<Mutation> notes;  // ranges and link records, which are written first
    RecordBatch records;
    std::vector<Mutation> replaced;  // written last
    size_t other_bytes = 0;          // of notes and replaced

    size_t bytes() const { return records.bytes() + other_bytes; }
    void Add(std::vector<Mutation>& list, Mutation mutation);
    void Clear();
  };

  Status WaitForWrite();
  // Whether the records of the batch are to be loaded.
  bool IsLoaded(const Batch& batch) const;
  Status Write(Batch& batch);
  Status Load();
  void RemoveAll();

  const StoreContext& store_;
  IdAllocator& ids_;
  HiddenInodes& hidden_;
  const size_t batch_bytes_;
  std::vector<HiddenRange> ranges_;
  uint64_t next_ = 0;  // number
  Batch batch_;
  std::thread thread_;
  // thread_ uses these until it has ended.
  Batch writing_;
  Status written_;
  std::unique_ptr<KvLoad> load_;  // null: none has begun
  size_t load_bytes_ = 0;         // added to it
  bool published_ = false;
};

}  // namespace siltfs
