// The entries of the index benchmark. An entry is computed from its number, and the number from the
// entry's name. So any number of entries can be put, looked up and checked without a list.
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <optional>

#include "index/chunk_index.h"

namespace siltfs {

class IndexKeys {
 public:
  // Names with this number or a higher one are never put.
  static constexpr uint64_t kAbsent = uint64_t{1} << 48;

  explicit IndexKeys(uint64_t seed) : seed_(seed) {}

  ChunkName NameOf(uint64_t number) const;
  Location LocationOf(uint64_t number) const;
  IndexEntry EntryOf(uint64_t number) const { return {NameOf(number), LocationOf(number)}; }
  // Returns nullopt if the location belongs to no number.
  std::optional<uint64_t> NumberOf(const Location& location) const;

 private:
  const uint64_t seed_;
};

// Maps numbers one to one onto all 64-bit words and spreads them evenly (the finalizer of
// splitmix64).
uint64_t MixNumber(uint64_t number);

// Takes entries in any order. Reports whether they were exactly the first N numbers, each once.
// (Other numbers with the same 64-bit sum would pass, too.)
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
