// The entries of the index benchmark: each made of its number, and each name giving its number
// back. So any number of entries can be put, looked up and checked without a list of them.
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <optional>

#include "index/chunk_index.h"

namespace siltfs {

class IndexKeys {
 public:
  // Numbers from here on name what is never put.
  static constexpr uint64_t kAbsent = uint64_t{1} << 48;

  explicit IndexKeys(uint64_t seed) : seed_(seed) {}

  ChunkName NameOf(uint64_t number) const;
  Location LocationOf(uint64_t number) const;
  IndexEntry EntryOf(uint64_t number) const { return {NameOf(number), LocationOf(number)}; }
  // Nothing if the name is none of these.
  std::optional<uint64_t> NumberOf(const ChunkName& name) const;

 private:
  const uint64_t seed_;
};

// Spreads numbers over all 64-bit words, one to one (the finalizer of splitmix64).
uint64_t MixNumber(uint64_t number);

// Takes entries in any order and tells whether they were, each once, the first so many numbers (or
// others that a 64-bit sum can't tell from them).
class NumberTally {
 public:
  void Add(uint64_t number) {
    ++count_;
    sum_ += MixNumber(number);
  }
  bool IsFirst(uint64_t count) const;
  uint64_t count() const { return count_; }

 private:
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace siltfs
