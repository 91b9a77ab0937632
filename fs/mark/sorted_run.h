// Runs of ascending 64-bit numbers in temporary files. ReferenceSorter writes runs when its memory
// is full, and merges them later.
//
// A run is a sequence of blocks; each block has a checksum and then numbers. Only the process that
// wrote a run reads it. So the numbers have the machine's own byte order, and the checksums have a
// secret seed.
//
// Thread-safety: each object belongs to one thread. Ownership: files and blocks belong to the
// caller and must outlive readers and writers. Errors: kNoSpace and kIoError of the device;
// kCorruption for a block that differs from what was written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

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

// Appends a run to a file. Blocks are as large as `block`, which must have at least two words.
class RunWriter {
 public:
  RunWriter(RunFile& file, std::span<uint64_t> block)
      : file_(file), block_(block), run_{.offset = file.end} {}

  // Appends a number; numbers must come in rising order.
  Status Append(uint64_t number) {
    block_[used_++] = number;
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

// Reads a run that was written with blocks as large as `block`.
class RunReader {
 public:
  RunReader(const RunFile& file, const SortedRun& run, std::span<uint64_t> block)
      : file_(&file), block_(block), offset_(run.offset), end_(run.offset + run.bytes) {}

  // The first call moves to the first number, and each later call moves to the next one.
  Status Next() { return ++at_ < used_ ? Status::Ok() : ReadBlock(); }
  bool AtEnd() const { return at_ == used_; }  // after Next()
  uint64_t number() const { return block_[at_]; }

 private:
  Status ReadBlock();

  const RunFile* file_;
  std::span<uint64_t> block_;
  uint64_t offset_;  // of the next block
  uint64_t end_;
  size_t at_ = 0;
  size_t used_ = 0;  // words
};

// The numbers of several runs in rising order, each once.
class RunMerge {
 public:
  // Moves to the first number.
  Status Start(std::vector<RunReader> readers);
  bool AtEnd() const { return heap_.empty(); }
  uint64_t number() const { return heap_.front().number; }
  Status Next();

 private:
  struct Head {
    uint64_t number;
    size_t reader;
  };
  Status Advance();
  void SiftDown(size_t at);

  std::vector<RunReader> readers_;
  std::vector<Head> heap_;  // the least number first
};

}  // namespace siltfs
