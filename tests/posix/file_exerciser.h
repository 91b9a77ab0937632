// Exercises one file with random operations. Each operation is also applied to a model in memory,
// and every byte read is compared with the model. The method is that of fsx, a program that has
// found bugs in most file systems.
//
// The sequence of operations depends only on the options, so a failure can be reproduced by its
// seed.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::testing {

struct FileExerciserOptions {
  std::string path;  // path of the file, which is created
  uint64_t seed = 1;
  uint64_t operations = 5000;
  uint64_t max_size = 256 << 10;  // bytes
  uint64_t alignment = 1;         // bytes; offsets and lengths are multiples of it
};

// Thrown if the file differs from the model or a call fails. The message contains the seed, the
// step and the last operations.
class ExerciseFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FileExerciser {
 public:
  explicit FileExerciser(FileExerciserOptions options);
  ~FileExerciser();
  FileExerciser(const FileExerciser&) = delete;
  FileExerciser& operator=(const FileExerciser&) = delete;

  void Run();

 private:
  struct Range {
    uint64_t offset, length;
    uint64_t end() const { return offset + length; }
  };

  void Step();
  void CompareAll();

  void Read();
  void Write();
  void MappedRead();
  void MappedWrite();
  void Truncate();
  void PunchHole();
  void ZeroRange();
  void Allocate();
  void CopyRange();
  void Reopen();
  void Sync();
  void SeekEverything();
  void DropPages();

  Range AnyRange();     // may reach behind the end of the file, but not behind max_size
  Range RangeInside();  // within the file; empty only if the file is empty
  Bytes Content(uint64_t length);
  void Put(uint64_t offset, ByteView data);  // writes to the model, which grows as needed
  void Grow(uint64_t size);
  void Compare(uint64_t offset, ByteView found);
  uint64_t Aligned(uint64_t value) const { return value / options_.alignment * options_.alignment; }
  uint64_t size() const { return model_.size(); }

  void Note(std::string operation);
  void Expect(bool good, const std::string& what);  // `what` is the call; errno is added
  [[noreturn]] void Fail(const std::string& what) const;

  const FileExerciserOptions options_;
  Random random_;
  Bytes model_;
  int fd_ = -1;
  uint64_t step_ = 0;
  std::deque<std::string> history_;  // the last operations
};

}  // namespace siltfs::testing
