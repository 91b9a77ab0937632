// One lane in plain C++, for the last messages of kernels without SHA instructions, and to test the
// code around the compression functions on any machine.
#include "chunker/sha1/compress.h"

namespace siltfs {

namespace {

uint32_t Rotate(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

uint32_t LoadBigEndian(const uint8_t* data) {
  return uint32_t{data[0]} << 24 | uint32_t{data[1]} << 16 | uint32_t{data[2]} << 8 | data[3];
}

// FIPS 180-4, 4.1.1.
uint32_t Ch(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (~x & z); }
uint32_t Parity(uint32_t x, uint32_t y, uint32_t z) { return x ^ y ^ z; }
uint32_t Maj(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (x & z) ^ (y & z); }

struct Working {
  uint32_t a, b, c, d, e;
};

// One round. The term with A is added last, because all other terms are known earlier.
template <uint32_t (*kFunction)(uint32_t, uint32_t, uint32_t)>
inline void Round(uint32_t a, uint32_t& b, uint32_t c, uint32_t d, uint32_t& e, uint32_t k_and_w) {
  e += k_and_w + kFunction(b, c, d);
  e += Rotate(a, 5);
  b = Rotate(b, 30);
}

// The last 16 words of the message schedule.
class Schedule {
 public:
  explicit Schedule(const uint8_t* block) {
    for (int t = 0; t < 16; ++t) w_[t] = LoadBigEndian(block + 4 * t);
  }
  uint32_t operator[](int t) {
    uint32_t& w = w_[t % 16];
    if (t >= 16) w = Rotate(w_[(t + 13) % 16] ^ w_[(t + 8) % 16] ^ w_[(t + 2) % 16] ^ w, 1);
    return w;
  }

 private:
  uint32_t w_[16];
};

template <uint32_t (*kFunction)(uint32_t, uint32_t, uint32_t)>
void TwentyRounds(Working& v, uint32_t k, Schedule& w, int first) {
  for (int t = first; t < first + 20; t += 5) {
    Round<kFunction>(v.a, v.b, v.c, v.d, v.e, k + w[t]);
    Round<kFunction>(v.e, v.a, v.b, v.c, v.d, k + w[t + 1]);
    Round<kFunction>(v.d, v.e, v.a, v.b, v.c, k + w[t + 2]);
    Round<kFunction>(v.c, v.d, v.e, v.a, v.b, k + w[t + 3]);
    Round<kFunction>(v.b, v.c, v.d, v.e, v.a, k + w[t + 4]);
  }
}

void CompressBlock(uint32_t* h, const uint8_t* block) {
  Schedule w(block);
  Working v = {h[0], h[1], h[2], h[3], h[4]};
  TwentyRounds<Ch>(v, 0x5a827999, w, 0);
  TwentyRounds<Parity>(v, 0x6ed9eba1, w, 20);
  TwentyRounds<Maj>(v, 0x8f1bbcdc, w, 40);
  TwentyRounds<Parity>(v, 0xca62c1d6, w, 60);
  h[0] += v.a;
  h[1] += v.b;
  h[2] += v.c;
  h[3] += v.d;
  h[4] += v.e;
}

}  // namespace

void Sha1CompressPortable(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  uint32_t h[5];
  for (size_t j = 0; j < 5; ++j) h[j] = state[j * kSha1MaxLanes];
  for (size_t n = 0; n < blocks; ++n) CompressBlock(h, data[0] + 64 * n);
  for (size_t j = 0; j < 5; ++j) state[j * kSha1MaxLanes] = h[j];
}

}  // namespace siltfs
