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

  // A name has one location for each version; it is put with version 0 first, and updates give it
  // higher versions. Locations of versions up to kMostVersion can be turned back into numbers if
  // the numbers are below 2^40.
  static constexpr uint32_t kMostVersion = 254;

  ChunkName NameOf(uint64_t number) const;
  Location LocationOf(uint64_t number, uint32_t version = 0) const;
  IndexEntry EntryOf(uint64_t number, uint32_t version = 0) const {
    return {NameOf(number), LocationOf(number, version)};
  }
  // Returns nullopt if the location belongs to no number and version.
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
