// The names that may be in a directory, so that most names that are not there need no read of
// metadata. An import or a copy of a tree asks for each name before it makes the file, and the
// directory was made a moment before.
//
// Holds hashes: a name that was added may be contained, and so may a few others. Names are not
// taken out. Memory: at most 8 KiB, and the
// table of inodes keeps 4,096 of them. Thread-safety: as a value. No errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace siltfs {

class KnownNames {
 public:
  // With more names, any name may be contained.
  static constexpr size_t kMost = 1024;

  void Add(std::string_view name);
  bool MayContain(std::string_view name) const;

 private:
  // The slot of the hash, or the empty one where it would go.
  size_t Find(uint32_t hash) const;
  void Grow();

  size_t count_ = 0;
  bool full_ = false;
  std::vector<uint32_t> slots_;  // open addressing; 0 is empty; a power of two, at most half full
};

}  // namespace siltfs
