// Sorts any number of 64-bit numbers in bounded memory, and drops repeated numbers. With it,
// garbage collection sorts references, to compare them with a chunk index in the index's order.
//
// When memory is full, its numbers are sorted and written as a run (sorted_run.h) to the file of
// the lowest level. When a level has as many runs as can be merged at once, they are merged into
// one run of the next level. So memory and the number of open files are bounded for any input. With
// 8 MiB of memory, each of up to 130 million numbers is written once, and each of up to 16 billion
// twice. If all numbers fit into memory, nothing is written.
//
// Thread-safety: one thread. Ownership: `env` must outlive it. Memory: `memory_bytes`, including
// the block that is being written. Durability: none; the files are removed with the sorter, or,
// after a crash, by RemoveLeftovers. Errors: kNoSpace, also if the disk would be left with less
// than minimum_free_bytes; kCorruption for a file that differs from what was written; kIoError.
// After an error the sorter is unusable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fs/mark/sorted_run.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/env/page_allocator.h"

namespace siltfs {

struct ReferenceSorterOptions {
  // Directory for the files; it must hold no other files. If it does not exist, it is created when
  // there is something to write, and later removed.
  std::string directory;
  size_t memory_bytes = 8u << 20;  // ReferenceSorter::kLeastMemory is the least
  uint64_t minimum_free_bytes = 0;
};

class ReferenceSorter {
 public:
  static constexpr size_t kLeastMemory = 4096;

  // Removes files that sorters of a killed process left in the directory; no sorter may be in use
  // there.
  static Status RemoveLeftovers(Env& env, const std::string& directory);
  // Calls RemoveLeftovers first, so only one sorter at a time may use the directory.
  static Result<std::unique_ptr<ReferenceSorter>> Create(Env& env, ReferenceSorterOptions options);
  ~ReferenceSorter();
  ReferenceSorter(const ReferenceSorter&) = delete;
  ReferenceSorter& operator=(const ReferenceSorter&) = delete;

  Status Add(uint64_t number) {
    if (numbers_.size() == capacity_) SILTFS_RETURN_IF_ERROR(MakeRoom());
    numbers_.push_back(number);
    return Status::Ok();
  }

  // Call after the last Add: moves to the first number.
  Status Sort();
  bool AtEnd() const { return spilled() ? merge_.AtEnd() : at_ == numbers_.size(); }
  uint64_t number() const { return spilled() ? merge_.number() : numbers_[at_]; }
  Status Next() {
    if (spilled()) return merge_.Next();
    ++at_;
    return Status::Ok();
  }

  uint64_t spilled_bytes() const { return spilled_bytes_; }  // written, to all levels

 private:
  ReferenceSorter(Env& env, ReferenceSorterOptions options, uint64_t seed);

  bool spilled() const { return !levels_.empty(); }
  size_t RunCount() const;
  void SortNumbers();
  Status MakeRoom();
  Status Spill();
  Status MergeLevel(size_t level);
  Result<RunFile*> FileOf(size_t level, uint64_t bytes_to_come);
  Status RemoveFileOf(size_t level);
  std::vector<RunReader> ReadersOf(size_t first_level, size_t end_level);

  Env& env_;
  const ReferenceSorterOptions options_;
  const size_t block_words_;
  const size_t fan_in_;    // runs that are merged at once
  const size_t capacity_;  // numbers in memory
  // While numbers are added: the numbers that were added since the last run was written. While runs
  // are merged: one block of each of these runs.
  PageVector<uint64_t> numbers_;
  std::vector<uint64_t> block_;  // being written
  std::vector<RunFile> levels_;  // a level without runs has no file
  RunMerge merge_;
  size_t at_ = 0;
  uint64_t seed_;
  uint64_t files_ = 0;  // made so far
  uint64_t spilled_bytes_ = 0;
  bool made_directory_ = false;
};

}  // namespace siltfs
