#include "store/base/checksum.h"

#include <xxhash.h>

#include <memory>

namespace siltfs {

uint64_t Checksum(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t Checksum(ByteView first, ByteView second, uint64_t seed) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_64bits_reset_withSeed(state.get(), seed);
  XXH3_64bits_update(state.get(), first.data(), first.size());
  XXH3_64bits_update(state.get(), second.data(), second.size());
  return XXH3_64bits_digest(state.get());
}

}  // namespace siltfs
