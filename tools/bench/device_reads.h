// What the device itself gives: random 4 KiB reads of a file, past the page cache, with as many in
// flight as a lookup of the index has. The measure of its lookups.
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
  // Writes `path`, which must not exist: at least `size` bytes that nothing can compress, each page
  // knowing its number.
  DeviceReads(Env& env, const std::string& path, uint64_t size);

  // Reads `count` pages, by `threads` threads with `depth` reads in flight each, and checks that
  // they are those asked for. Returns seconds.
  double Read(uint64_t count, unsigned threads, unsigned depth, uint64_t seed);

  // False where the directory lies on something that has only cached reads.
  bool direct() const { return direct_; }
  // How reads are kept in flight, as ReadQueue::mechanism() says.
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
