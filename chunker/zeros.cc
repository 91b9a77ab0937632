#include "chunker/zeros.h"

#include <algorithm>
#include <cstring>

namespace siltfs {

bool IsAllZero(ByteView bytes) {
  constexpr size_t kHead = 16;
  const ByteView head = bytes.first(std::min(bytes.size(), kHead));
  if (std::any_of(head.begin(), head.end(), [](uint8_t byte) { return byte != 0; })) return false;
  if (bytes.size() <= kHead) return true;
  // The first 16 bytes are 0. Compares every other byte with the byte 16 places before it.
  return std::memcmp(bytes.data(), bytes.data() + kHead, bytes.size() - kHead) == 0;
}

}  // namespace siltfs
