// The name of a chunk, and the tag that tells chunks with the same SHA-1 apart.
//
// The name is the SHA-1 of the uncompressed bytes. SHA-1 collisions exist, so a name identifies a
// chunk only together with its tag: XXH3-64 of the same bytes under the store's random secret
// (superblock). If a stored chunk with other bytes already has the name, the new chunk gets a
// salted name: SHA-1 of (salt prefix, bytes). chunker/ computes names; TagKey computes tags.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "store/base/bytes.h"

namespace siltfs {

struct ChunkName {
  static constexpr size_t kSize = 20;
  std::array<uint8_t, kSize> bytes{};

  auto operator<=>(const ChunkName&) const = default;

  ByteView view() const { return bytes; }
  std::string ToHex() const;
  // The first 8 bytes as a number, most significant first, so that the numbers sort like the names.
  uint64_t Prefix64() const;
  static ChunkName FromBytes(ByteView view);  // view.size() == kSize
};

using ChunkTag = uint64_t;

// The per-store key of the tags. Immutable, so safe to share between threads.
class TagKey {
 public:
  static constexpr size_t kSecretSize = 192;
  using Secret = std::array<uint8_t, kSecretSize>;

  explicit TagKey(const Secret& secret) : secret_(secret) {}
  ChunkTag TagOf(ByteView plain) const;
  const Secret& secret() const { return secret_; }

 private:
  Secret secret_;
};

}  // namespace siltfs

template <>
struct std::hash<siltfs::ChunkName> {
  size_t operator()(const siltfs::ChunkName& name) const noexcept {
    uint64_t v;
    std::memcpy(&v, name.bytes.data(), sizeof v);  // the bytes of a SHA-1 are uniform
    return v;
  }
};
