// Measures the device without an index: random 4 KiB reads of files, past the page cache, with as
// many reads in flight as in a lookup of the index. The index's lookups are compared with this
// rate.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs {

class DeviceReads {
 public:
  // Writes the file `path`, which must not exist: at least `size` incompressible bytes. Each page
  // contains its own number.
  DeviceReads(Env& env, const std::string& path, uint64_t size);
  // The largest files in `directory` and below, at most kMostFiles, as they are now. They have no
  // numbers to check. Null if no file has a page. Some devices read files that were just written
  // faster than older ones; so an index's own files show what the device gives for them.
  static std::unique_ptr<DeviceReads> OfFilesIn(Env& env, const std::string& directory);

  // Reads `count` pages with `threads` threads, each with `depth` reads in flight, and checks the
  // pages' numbers. Returns the time in seconds.
  double Read(uint64_t count, unsigned threads, unsigned depth, uint64_t seed);

  Env& env() { return env_; }
  // Returns false if the directory's file system offers only cached reads.
  bool direct() const { return direct_; }
  // Returns the way in which reads are kept in flight (ReadQueue::mechanism()).
  const std::string& mechanism() const { return mechanism_; }
  uint64_t size() const { return pages_ * kPage; }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kMostFiles = 512;

  explicit DeviceReads(Env& env) : env_(env) {}
  Status Open(const std::string& path, OpenMode mode);
  void OpenAllIn(const std::string& directory);
  void ReadShare(uint64_t count, unsigned depth, uint64_t seed);
  // Points the request at a page of all files together.
  void Aim(uint64_t page, ReadRequest& request) const;

  Env& env_;
  uint64_t pages_ = 0;
  bool numbered_ = false;
  bool direct_ = true;
  std::string mechanism_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<uint64_t> ends_;  // of each file, in pages of all files together
};

}  // namespace siltfs
