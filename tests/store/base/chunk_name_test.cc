#include "store/base/chunk_name.h"

#include <algorithm>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

ChunkName Drawn(Random& random) {
  ChunkName name;
  random.Fill(name.bytes);
  return name;
}

TEST_CASE("a name is shown as 40 hex digits, first byte first") {
  ChunkName name;
  for (size_t i = 0; i < ChunkName::kSize; ++i) name.bytes[i] = static_cast<uint8_t>(13 * i);
  REQUIRE(name.ToHex() == "000d1a2734414e5b6875828f9ca9b6c3d0ddeaf7");
  REQUIRE(name.Prefix64() == 0x000d1a2734414e5bU);
  REQUIRE(ChunkName::FromBytes(name.view()) == name);
}

TEST_CASE("names, their hex digits and their prefixes sort alike") {
  Random random(5);
  for (int i = 0; i < 1'000; ++i) {
    const ChunkName a = Drawn(random), b = Drawn(random);
    REQUIRE((a < b) == (a.ToHex() < b.ToHex()));
    REQUIRE((a < b) == (a.Prefix64() < b.Prefix64()));
  }
}

TEST_CASE("a tag depends on the bytes and on the store's secret") {
  Random random(6);
  TagKey::Secret secret;
  random.Fill(secret);
  const TagKey key(secret);
  secret[100] ^= 1;
  const TagKey other(secret);
  Bytes bytes(4'096);
  random.Fill(bytes);
  const ChunkTag tag = key.TagOf(bytes);
  REQUIRE(key.TagOf(bytes) == tag);
  REQUIRE(other.TagOf(bytes) != tag);
  bytes[4'000] ^= 1;
  REQUIRE(key.TagOf(bytes) != tag);
  REQUIRE(key.secret() != other.secret());
}

}  // namespace
}  // namespace siltfs
