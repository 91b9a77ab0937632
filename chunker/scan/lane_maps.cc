#include "chunker/scan/lane_maps.h"

namespace siltfs {
namespace {

// Byte `index` of the state that represents a fingerprint.
uint8_t StateByte(uint64_t fingerprint, size_t index) {
  return static_cast<uint8_t>(fingerprint << kLaneStateShift >> (8 * index));
}

// The map from a byte to image(byte); `image` must be linear.
template <typename Image>
ByteMap MakeMap(const Image& image) {
  ByteMap map{};
  for (uint8_t i = 0; i < 16; ++i) {
    map.low[i] = image(i);
    map.high[i] = image(static_cast<uint8_t>(i << 4));
  }
  for (unsigned in = 0; in < 8; ++in) {
    const uint8_t column = image(static_cast<uint8_t>(1U << in));
    for (unsigned out = 0; out < 8; ++out) {
      const uint64_t bit = column >> out & 1;
      map.matrix |= bit << (8 * (7 - out) + in);
    }
  }
  return map;
}

}  // namespace

LaneMaps::LaneMaps(const RabinTables& rabin) : overflow(), leave(), enter() {
  for (size_t i = 0; i < kLaneStateBytes; ++i) {
    // The state's highest byte holds the fingerprint's highest eight bits. Pushing a zero byte to a
    // fingerprint that has only these bits gives their contribution to the next state.
    overflow[i] = MakeMap([&](uint8_t top) {
      return StateByte(rabin.Push(uint64_t{top} << (RabinPolynomial::kDegree - 8), 0), i);
    });
    leave[i] = MakeMap([&](uint8_t out) { return StateByte(rabin.Roll(0, out, 0), i); });
  }
  for (size_t i = 0; i < kLaneEnterMaps; ++i) {
    enter[i] = MakeMap([&](uint8_t in) { return StateByte(in, i); });
  }
}

}  // namespace siltfs
