// Runs of ascending records in temporary files. A record consists of a fixed number of 64-bit
// words. RecordSorter writes runs when its memory is full, and merges them later.
//
// A run is a sequence of blocks; each block has a checksum and then records. Only the process that
// wrote a run reads it. So the words have the machine's own byte order, and the checksums have a
// secret seed.
//
// Thread-safety: each object belongs to one thread. Ownership: files and blocks belong to the
// caller and must outlive readers and writers. Errors: kNoSpace and kIoError of the device;
// kCorruption for a block that differs from what was written.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

// The records of RecordSorter. The templates below are made for these types only. Records are
// ordered by their first word, then by their second one, and so on.
using OneWord = uint64_t;
using TwoWords = std::array<uint64_t, 2>;
using ThreeWords = std::array<uint64_t, 3>;
using EightWords = std::array<uint64_t, 8>;

template <typename Record>
inline constexpr size_t kWordsOf = sizeof(Record) / sizeof(uint64_t);

struct SortedRun {
  uint64_t offset = 0;  // in its file
  uint64_t bytes = 0;   // checksums included
};

// A file of runs, one behind the other.
struct RunFile {
  std::string path;
  std::unique_ptr<File> file;
  uint64_t seed = 0;  // of its checksums
  uint64_t end = 0;   // bytes
  std::vector<SortedRun> runs;
};

// The part of `block` that is used: a word for the checksum, and whole records.
template <typename Record>
std::span<uint64_t> UsedPartOf(std::span<uint64_t> block) {
  return block.first(1 + (block.size() - 1) / kWordsOf<Record> * kWordsOf<Record>);
}

// Appends a run to a file. A block takes at most the memory of `block`, which must have room for
// the checksum and one record.
template <typename Record>
class RunWriter {
 public:
  RunWriter(RunFile& file, std::span<uint64_t> block)
      : file_(file), block_(UsedPartOf<Record>(block)), run_{.offset = file.end} {}

  // Appends a record; records must come in rising order.
  Status Append(const Record& record) {
    std::memcpy(&block_[used_], &record, sizeof record);
    used_ += kWordsOf<Record>;
    return used_ < block_.size() ? Status::Ok() : WriteBlock();
  }
  // Adds the run to the file's runs.
  Status Finish();

 private:
  Status WriteBlock();

  RunFile& file_;
  const std::span<uint64_t> block_;
  SortedRun run_;
  size_t used_ = 1;  // words; the first one is for the checksum
};

// Reads a run that was written with a block of the same size.
template <typename Record>
class RunReader {
 public:
  RunReader(const RunFile& file, const SortedRun& run, std::span<uint64_t> block)
      : file_(&file),
        block_(UsedPartOf<Record>(block)),
        offset_(run.offset),
        end_(run.offset + run.bytes) {}

  // The first call moves to the first record, and each later call moves to the next one.
  Status Next() {
    at_ += kWordsOf<Record>;
    return at_ < used_ ? Status::Ok() : ReadBlock();
  }
  bool AtEnd() const { return at_ == used_; }  // after Next()
  Record record() const {
    Record record;
    std::memcpy(&record, &block_[at_], sizeof record);
    return record;
  }

 private:
  Status ReadBlock();

  const RunFile* file_;
  std::span<uint64_t> block_;
  uint64_t offset_;  // of the next block
  uint64_t end_;
  size_t at_ = 0;
  size_t used_ = 0;  // words
};

// The records of several runs in rising order, each once.
template <typename Record>
class RunMerge {
 public:
  // Moves to the first record.
  Status Start(std::vector<RunReader<Record>> readers);
  bool AtEnd() const { return heap_.empty(); }
  const Record& record() const { return heap_.front().record; }
  Status Next();

 private:
  struct Head {
    Record record;
    size_t reader;
  };
  Status Advance();
  void SiftDown(size_t at);

  std::vector<RunReader<Record>> readers_;
  std::vector<Head> heap_;  // the least record first
};

}  // namespace siltfs
