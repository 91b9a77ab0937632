// Reads all changes that can be read of a table of RocksDB's, whatever is damaged in it.
//
// The table's index is not needed, and not asked: data blocks stand one behind another, each with a
// checksum that tells where it ends (table_block.h). Where none begins that is whole, the next one
// is looked for byte by byte. So a damaged block costs what it held, and damage of anything else
// costs nothing.
//
// Not thread-safe. Memory: 1 MiB, and a block. Errors: none for bytes that cannot be read, which
// count as damaged; Env's where the file cannot be opened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/meta/table_block.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class TableSalvage {
 public:
  // Stands at the first change.
  static Result<std::unique_ptr<TableSalvage>> Open(Env& env, const std::string& path);

  // False at the end.
  bool Valid() const { return position_ < changes_.size(); }
  // In the order of IsBefore.
  const StoredChange& change() const { return changes_[position_]; }
  void Next();

  // So far.
  uint64_t changes_read() const { return changes_read_; }
  uint64_t lost_bytes() const { return lost_bytes_; }
  // Nothing if nobody knows; at the end at the latest.
  std::optional<uint64_t> changes_expected() const { return changes_expected_; }

 private:
  TableSalvage(std::unique_ptr<File> file, uint64_t size);

  void ReadBlock();
  // Of a block that holds no data.
  void Pass(size_t bytes);
  // From `at_` on, as much as a block may have, or the file.
  ByteView Window();
  void Fill();

  const std::unique_ptr<File> file_;
  const uint64_t size_;
  std::vector<StoredChange> changes_;  // of one block
  size_t position_ = 0;
  uint64_t at_ = 0;      // of what was not looked at
  bool in_step_ = true;  // a block ended there
  Bytes buffer_;
  uint64_t buffer_offset_ = 0;
  uint64_t changes_read_ = 0;
  uint64_t lost_bytes_ = 0;
  std::optional<uint64_t> changes_expected_;
};

}  // namespace siltfs
