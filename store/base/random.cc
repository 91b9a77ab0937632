#include "store/base/random.h"

#include <bit>

namespace siltfs {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15U;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
}

void Random::Fill(MutableByteView out) {
  size_t i = 0;
  while (i < out.size()) {
    uint64_t word = Next();
    for (size_t k = 0; k < 8 && i < out.size(); ++k, ++i)
      out[i] = static_cast<uint8_t>(word >> (8 * k));
  }
}

}  // namespace siltfs
