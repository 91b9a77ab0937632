// The content of a regular file in memory: pages by number. An absent page is a hole.
//
// Not thread-safe. Units: bytes. No errors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "fs/interface/file_system.h"
#include "store/base/bytes.h"

namespace siltfs::testing {

class MemoryContent {
 public:
  static constexpr uint64_t kPageBytes = 4096;  // holes consist of whole pages

  uint64_t size() const { return size_; }
  // The size without the holes.
  uint64_t AllocatedBytes() const;

  // Returns the number of bytes read. They fill `out` except at the end of the file.
  size_t Read(uint64_t offset, MutableByteView out) const;
  void Write(uint64_t offset, ByteView data);
  // Makes [begin, end) zeros; whole pages become holes.
  void Zero(uint64_t begin, uint64_t end);
  void Resize(uint64_t size);
  // As FileSystem::Seek.
  std::optional<uint64_t> Seek(uint64_t offset, SeekTarget target) const;

 private:
  uint64_t size_ = 0;
  std::map<uint64_t, Bytes> pages_;  // by number; kPageBytes each
};

}  // namespace siltfs::testing
