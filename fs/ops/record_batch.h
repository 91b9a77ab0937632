// Records of inodes that are written together: copies of keys and values, without an allocation for
// each.
//
// Not thread-safe. Memory: about bytes().
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"

namespace siltfs {

class RecordBatch {
 public:
  RecordBatch();

  // Adds a record of one of kTablesOfInodes. No key may be added twice.
  void Add(std::string_view key, std::string_view value);
  size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  void Clear();

  // The records, sorted: a run for each table. It is valid until the next change.
  const std::vector<KvRun>& Runs();

 private:
  char* Allocate(size_t bytes);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  // in the last block
  size_t left_ = 0;
  size_t bytes_ = 0;
  std::vector<KvRun> runs_;  // in the order of kTablesOfInodes
};

}  // namespace siltfs
