// Sorts any number of records in bounded memory, and drops repeated records. With it, garbage
// collection sorts references, to compare them with a chunk index in the index's order. The sizes
// of snapshots (snapshot_space.h) come from sorted references, too.
//
// When memory is full, its records are sorted and written as a run (sorted_run.h) to the file of
// the lowest level. When a level has as many runs as can be merged at once, they are merged into
// one run of the next level. So memory and the number of open files are bounded for any input. With
// 8 MiB of memory, each of up to 130 million records of one word is written once, and each of up to
// 16 billion twice. If all records fit into memory, nothing is written.
//
// Thread-safety: one thread. Ownership: `env` must outlive it. Memory: `memory_bytes`, including
// the block that is being written. Durability: none; the files are removed with the sorter, or,
// after a crash, by RemoveLeftovers; files without names never stay behind. Errors: kNoSpace, also
// if the disk would be left with less than minimum_free_bytes; kCorruption for a file that differs
// from what was written; kIoError. After an error the sorter is unusable.
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
  // The name of each file is removed as soon as the file was made. So the directory may hold other
  // files, and those of other sorters. It is created if needed, and the caller removes it.
  bool unnamed_files = false;
};

template <typename Record>
class RecordSorter {
 public:
  static constexpr size_t kLeastMemory = 4096;

  // Removes files that sorters of a killed process left in the directory; no sorter may be in use
  // there.
  static Status RemoveLeftovers(Env& env, const std::string& directory);
  // Calls RemoveLeftovers first, so only one sorter at a time may use the directory, unless the
  // files have no names.
  static Result<std::unique_ptr<RecordSorter>> Create(Env& env, ReferenceSorterOptions options);
  ~RecordSorter();
  RecordSorter(const RecordSorter&) = delete;
  RecordSorter& operator=(const RecordSorter&) = delete;

  Status Add(const Record& record) {
    if (records_.size() == capacity_) SILTFS_RETURN_IF_ERROR(MakeRoom());
    records_.push_back(record);
    return Status::Ok();
  }

  // Call after the last Add: moves to the first record.
  Status Sort();
  bool AtEnd() const { return spilled() ? merge_.AtEnd() : at_ == records_.size(); }
  const Record& record() const { return spilled() ? merge_.record() : records_[at_]; }
  Status Next() {
    if (spilled()) return merge_.Next();
    ++at_;
    return Status::Ok();
  }

  uint64_t spilled_bytes() const { return spilled_bytes_; }  // written, to all levels

 private:
  RecordSorter(Env& env, ReferenceSorterOptions options, uint64_t seed);

  bool spilled() const { return !levels_.empty(); }
  size_t RunCount() const;
  void SortRecords();
  Status MakeRoom();
  Status Spill();
  Status MergeLevel(size_t level);
  Result<RunFile*> FileOf(size_t level, uint64_t bytes_to_come);
  Status RemoveFileOf(size_t level);
  std::vector<RunReader<Record>> ReadersOf(size_t first_level, size_t end_level);

  Env& env_;
  const ReferenceSorterOptions options_;
  const size_t block_words_;
  const size_t fan_in_;    // runs that are merged at once
  const size_t capacity_;  // records in memory
  // While records are added: the records that were added since the last run was written. While runs
  // are merged: one block of each of these runs.
  PageVector<Record> records_;
  std::vector<uint64_t> block_;  // being written
  std::vector<RunFile> levels_;  // a level without runs has no file
  RunMerge<Record> merge_;
  size_t at_ = 0;
  uint64_t seed_;
  uint64_t files_ = 0;  // made so far
  uint64_t spilled_bytes_ = 0;
  bool made_directory_ = false;
};

// Sorts references as 64-bit places in the order of a chunk index.
using ReferenceSorter = RecordSorter<OneWord>;

}  // namespace siltfs
