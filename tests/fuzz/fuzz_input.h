// Splits a fuzzer's input into the values that a target needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs::testing {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  size_t remaining() const { return rest_.size(); }

  // The next `bytes` bytes as a little-endian number; missing bytes are 0.
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    const ByteView taken = Take(bytes);
    for (size_t i = 0; i < taken.size(); ++i) number |= uint64_t{taken[i]} << (8 * i);
    return number;
  }
  // A number in [low, high], from the next `bytes` bytes.
  uint64_t Between(uint64_t low, uint64_t high, size_t bytes) {
    return low + Number(bytes) % (high - low + 1);
  }
  ByteView Take(size_t most) {
    const ByteView taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  ByteView rest_;
};

// Aborts unless the condition holds. It is not assert, because it must check in every build type.
inline void MustHold(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Returns the value of a call that must succeed, because it does not depend on the input.
template <typename T>
T Must(Result<T> result) {
  MustHold(result.ok(), result.status().ToString().c_str());
  return std::move(result).value();
}

// Decodes the bytes, encodes the value, and decodes that again. The second value must be the same
// as the first one. False if the first bytes are refused.
template <typename Decode, typename Encode, typename Same>
bool DecodesAsEncoded(ByteView bytes, const Decode& decode, const Encode& encode,
                      const Same& same) {
  const auto first = decode(bytes);
  if (!first.ok()) {
    first.status().IgnoreError("any bytes may be refused");
    return false;
  }
  const std::string written = encode(*first);
  const auto second = decode(AsBytes(written));
  MustHold(second.ok(), "an encoded value is decoded");
  MustHold(same(*first, *second), "a value is decoded as it was encoded");
  return true;
}

// Makes an input from the numbers by which the target chooses what to do, and the bytes after them.
inline Bytes JoinInput(std::initializer_list<uint8_t> choices, ByteView bytes) {
  Bytes input(choices.size() + bytes.size());
  std::copy(bytes.begin(), bytes.end(), std::copy(choices.begin(), choices.end(), input.begin()));
  return input;
}

// Returns valid inputs of a target. Other inputs are made by changing these. Each target defines
// this function, which may return no inputs.
std::vector<Bytes> FuzzSeeds();

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
