#include "store/base/checksum.h"

#include <xxhash.h>

#include <memory>

namespace siltfs {

uint64_t Checksum(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

namespace {

struct Free {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using XxhState = std::unique_ptr<XXH3_state_t, Free>;

XxhState NewState(uint64_t seed) {
  XxhState state(XXH3_createState());
  XXH3_64bits_reset_withSeed(state.get(), seed);
  return state;
}

}  // namespace

uint64_t Checksum(ByteView first, ByteView second, uint64_t seed) {
  const XxhState state = NewState(seed);
  XXH3_64bits_update(state.get(), first.data(), first.size());
  XXH3_64bits_update(state.get(), second.data(), second.size());
  return XXH3_64bits_digest(state.get());
}

struct StreamingChecksum::State {
  XxhState xxh = NewState(0);
};

StreamingChecksum::StreamingChecksum() : state_(std::make_unique<State>()) {}
StreamingChecksum::~StreamingChecksum() = default;

void StreamingChecksum::Add(ByteView bytes) {
  XXH3_64bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

uint64_t StreamingChecksum::value() const { return XXH3_64bits_digest(state_->xxh.get()); }

}  // namespace siltfs
