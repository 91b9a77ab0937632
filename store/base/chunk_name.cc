#include "store/base/chunk_name.h"

#include <xxhash.h>

#include <algorithm>
#include <cassert>

namespace siltfs {

std::string ChunkName::ToHex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * kSize);
  for (uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

uint64_t ChunkName::Prefix64() const {
  uint64_t v = 0;
  for (size_t i = 0; i < 8; ++i) v = v << 8 | bytes[i];
  return v;
}

ChunkName ChunkName::FromBytes(ByteView view) {
  assert(view.size() == kSize);
  ChunkName name;
  std::copy_n(view.begin(), kSize, name.bytes.begin());
  return name;
}

ChunkTag TagKey::TagOf(ByteView plain) const {
  return XXH3_64bits_withSecret(plain.data(), plain.size(), secret_.data(), secret_.size());
}

}  // namespace siltfs
