// Operations for crash tests: the seed determines each operation, and operation N also sets a key
// to N. So this key shows which prefix of the operations a store holds, and a test can verify it.
#pragma once

#include <cstdint>

#include "fs/meta/metadata_store.h"

namespace siltfs::testing {

struct Operation {
  std::vector<Mutation> mutations;
  Counters differences{};
};

class NumberedOperations {
 public:
  // The operations set `keys` different keys to values of at most `value_bytes`.
  NumberedOperations(uint64_t seed, uint64_t keys, size_t value_bytes)
      : seed_(seed), keys_(keys), value_bytes_(value_bytes) {}

  Operation Make(uint64_t number) const;  // numbers begin at 1
  // Checks that the store holds exactly the operations 1 to some number; returns that number.
  uint64_t CheckPrefix(const MetadataStore& store) const;

  // The number of the last operation that the store holds, read from its key.
  static uint64_t LastIn(const MetadataStore& store);

 private:
  const uint64_t seed_;
  const uint64_t keys_;
  const size_t value_bytes_;
};

}  // namespace siltfs::testing
