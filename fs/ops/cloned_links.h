// The copies of files with several names, in a clone that is being made.
//
// Most files have all of their names in the tree: such a file is forgotten when its last name was
// found. If too many files are known at a time, all of them go into link records in metadata
// (fs/records/hidden_range.h), and are read from there when they are met again.
//
// Not thread-safe. Memory: 64 bytes for each of `most` files. Errors: those of HiddenWriter and
// metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "fs/ops/hidden_writer.h"
#include "fs/records/hidden_range.h"

namespace siltfs {

class ClonedLinks {
 public:
  // The number of files known in memory, by default.
  static constexpr size_t kMost = 1u << 18;

  // `writer` must outlive it.
  explicit ClonedLinks(HiddenWriter& writer, size_t most = kMost) : writer_(writer), most_(most) {}

  // Counts another name of the file, and returns its copy; nullopt if the file is met for the first
  // time.
  Result<std::optional<uint64_t>> CountName(uint64_t inode);
  // Adds a file of which one name was found.
  Status Add(uint64_t inode, uint64_t copy, uint32_t links);
  // Calls `visit` for each file that has names outside of the tree, and removes the link records.
  Status Finish(const std::function<Status(uint64_t inode, const HiddenLink& link)>& visit);

 private:
  Status Spill();

  HiddenWriter& writer_;
  const size_t most_;
  std::unordered_map<uint64_t, HiddenLink> links_;
  bool spilled_ = false;
};

}  // namespace siltfs
