// Measures the device without an index: random 4 KiB reads of a file, past the page cache, with as
// many reads in flight as in a lookup of the index. The index's lookups are compared with this
// rate.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "store/env/env.h"

namespace siltfs {

class DeviceReads {
 public:
  // Writes the file `path`, which must not exist: at least `size` incompressible bytes. Each page
  // contains its own number.
  DeviceReads(Env& env, const std::string& path, uint64_t size);

  // Reads `count` pages with `threads` threads, each with `depth` reads in flight, and checks the
  // pages' numbers. Returns the time in seconds.
  double Read(uint64_t count, unsigned threads, unsigned depth, uint64_t seed);

  // Returns false if the directory's file system offers only cached reads.
  bool direct() const { return direct_; }
  // Returns the way in which reads are kept in flight (ReadQueue::mechanism()).
  const std::string& mechanism() const { return mechanism_; }
  uint64_t size() const { return pages_ * kPage; }

 private:
  static constexpr size_t kPage = 4096;

  void ReadShare(uint64_t count, unsigned depth, uint64_t seed);

  Env& env_;
  const uint64_t pages_;
  bool direct_ = true;
  std::string mechanism_;
  std::unique_ptr<File> file_;
};

}  // namespace siltfs
