// A set of the blocks of one content. Takes no memory while it is empty.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace siltfs {

class BlockSet {
 public:
  bool Contains(uint32_t block) const {
    return block / 64 < words_.size() && (words_[block / 64] >> (block % 64) & 1) != 0;
  }
  void Add(uint32_t block) {
    if (words_.size() <= block / 64) words_.resize(block / 64 + 1);
    words_[block / 64] |= uint64_t{1} << (block % 64);
  }
  void Remove(uint32_t block) {
    if (block / 64 < words_.size()) words_[block / 64] &= ~(uint64_t{1} << (block % 64));
  }
  // Makes this the set of the first `count` blocks.
  void Fill(uint32_t count) {
    words_.assign(count / 64, ~uint64_t{0});
    if (count % 64 != 0) words_.push_back((uint64_t{1} << (count % 64)) - 1);
  }
  void Clear() { words_ = {}; }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace siltfs
