// Reads all undamaged changes of a RocksDB table that may be damaged anywhere.
//
// The table's index is not used: data blocks are consecutive, and the checksum of each shows where
// it ends (table_block.h). If no whole block begins where the last one ended, the next block is
// searched byte by byte. So if a data block is damaged, only the changes in this block are lost.
// Other damage loses no changes.
//
// Not thread-safe. Memory: 1 MiB, and one block. Errors: Env's if the file cannot be opened;
// unreadable bytes are no error and count as damaged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/rocksdb/table_block.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class TableSalvage {
 public:
  // Opens the table. The result is at the first change.
  static Result<std::unique_ptr<TableSalvage>> Open(Env& env, const std::string& path);

  // Whether there is a current change; false at the end.
  bool Valid() const { return position_ < changes_.size(); }
  // The current change. Changes come in the order of IsBefore.
  const StoredChange& change() const { return changes_[position_]; }
  void Next();

  // Counts so far.
  uint64_t changes_read() const { return changes_read_; }
  uint64_t lost_bytes() const { return lost_bytes_; }
  // The number of changes according to the table's properties; unset if the properties were not
  // found yet. The number is final when the table was read to its end.
  std::optional<uint64_t> changes_expected() const { return changes_expected_; }

 private:
  TableSalvage(std::unique_ptr<File> file, uint64_t size);

  void ReadBlock();
  // Moves past a block that holds no data.
  void Pass(size_t bytes);
  // The bytes from `at_` on: as many as a block may have, or the rest of the file.
  ByteView Window();
  void Fill();

  const std::unique_ptr<File> file_;
  const uint64_t size_;
  std::vector<StoredChange> changes_;  // of the current block
  size_t position_ = 0;
  uint64_t at_ = 0;      // offset of the first byte not examined yet
  bool in_step_ = true;  // a block ended at at_
  Bytes buffer_;
  uint64_t buffer_offset_ = 0;
  uint64_t changes_read_ = 0;
  uint64_t lost_bytes_ = 0;
  std::optional<uint64_t> changes_expected_;
};

}  // namespace siltfs
