#include "chunker/chunk_namer.h"

#include <set>
#include <string>

#include "tests/chunker/collisions.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr ChunkNamer::StoreUuid kUuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

ChunkNamer MakeNamer(const ChunkNamer::StoreUuid& uuid = kUuid) {
  auto namer = ChunkNamer::Create(uuid);
  REQUIRE_OK(namer);
  return std::move(namer).value();
}

}  // namespace

TEST_CASE("names are SHA-1") {
  ChunkNamer namer = MakeNamer();
  CHECK(namer.NameOf({}).ToHex() == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(namer.NameOf(AsBytes("abc")).ToHex() == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(namer.NameOf(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).ToHex() ==
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  CHECK(namer.NameOf(Bytes(1'000'000, 'a')).ToHex() == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("names of many chunks at once equal those of single chunks") {
  ChunkNamer namer = MakeNamer();
  Random random(7);
  for (size_t count = 0; count <= 40; ++count) {
    CAPTURE(count);
    std::vector<Bytes> data;
    for (size_t i = 0; i < count; ++i)
      data.push_back(RandomBytes(random.Next(), random.Below(5000)));
    const std::vector<ByteView> chunks(data.begin(), data.end());
    std::vector<ChunkName> names(count);
    namer.NamesOf(chunks, names);
    for (size_t i = 0; i < count; ++i) REQUIRE(names[i] == namer.NameOf(chunks[i]));
  }
}

TEST_CASE("a name does not depend on earlier names") {
  ChunkNamer namer = MakeNamer();
  const ChunkName abc = namer.NameOf(AsBytes("abc"));
  static_cast<void>(namer.SaltedNameOf(AsBytes("xyz"), 3));
  static_cast<void>(namer.NameOf(RandomBytes(1, 10'000)));
  CHECK(namer.NameOf(AsBytes("abc")) == abc);
}

TEST_CASE("a namer can be moved") {
  ChunkNamer namer = MakeNamer();
  ChunkNamer moved = std::move(namer);
  CHECK(moved.NameOf(AsBytes("abc")).ToHex() == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(moved.SaltedNameOf(AsBytes("abc"), 1).ToHex() ==
        "9bef930c6c4a0f8321a9688efd16e299f25a2073");
}

TEST_CASE("names of a store do not depend on its UUID, salted names do") {
  ChunkNamer one = MakeNamer();
  ChunkNamer other = MakeNamer({9});
  CHECK(one.NameOf(AsBytes("abc")) == other.NameOf(AsBytes("abc")));
  CHECK(one.SaltedNameOf(AsBytes("abc"), 1) != other.SaltedNameOf(AsBytes("abc"), 1));
}

TEST_CASE("salted names agree with an independent implementation") {
  ChunkNamer namer = MakeNamer();
  CHECK(namer.SaltedNameOf(AsBytes("abc"), 1).ToHex() ==
        "9bef930c6c4a0f8321a9688efd16e299f25a2073");
  CHECK(namer.SaltedNameOf({}, 1).ToHex() == "619577dfdea0e920d182aa4b75f6145b572e49ac");
  CHECK(namer.SaltedNameOf(AsBytes("abc"), 255).ToHex() ==
        "92c5f0ed7be0e4e75c0626ffd495ddf99e425c36");
  CHECK(namer.SaltedNameOf({}, 255).ToHex() == "ae6b95fafc18542fbbf46f493a8aaa517b974330");
}

TEST_CASE("the salt prefix is the text, the UUID, the salt number and zeros") {
  const ChunkNamer::SaltPrefix prefix = ChunkNamer::MakeSaltPrefix(kUuid, 7);
  std::string expected = "siltfs salted chunk name";
  for (char c = 0; c < 16; ++c) expected += c;
  expected += '\7';
  expected.resize(64, '\0');
  CHECK(AsText(prefix) == expected);
}

TEST_CASE("a salted name is the unsalted name of the prefix and the bytes") {
  ChunkNamer namer = MakeNamer();
  const ChunkNamer::SaltPrefix prefix = ChunkNamer::MakeSaltPrefix(kUuid, 200);
  const Bytes plain = RandomBytes(2, 5000);
  Bytes whole(prefix.begin(), prefix.end());
  whole.insert(whole.end(), plain.begin(), plain.end());
  CHECK(namer.SaltedNameOf(plain, 200) == namer.NameOf(whole));
}

TEST_CASE("every salt number gives another name") {
  ChunkNamer namer = MakeNamer();
  std::set<ChunkName> names = {namer.NameOf(AsBytes("abc"))};
  for (int salt = 1; salt <= 255; ++salt)
    names.insert(namer.SaltedNameOf(AsBytes("abc"), static_cast<uint8_t>(salt)));
  CHECK(names.size() == 256);
}

TEST_CASE("published SHA-1 collisions have one name but different salted names") {
  ChunkNamer namer = MakeNamer();
  for (const auto& [what, first, second, name] : Collisions()) {
    CAPTURE(what);
    REQUIRE(first != second);
    REQUIRE(first.size() == second.size());
    CHECK(namer.NameOf(first).ToHex() == name);
    CHECK(namer.NameOf(second).ToHex() == name);
    for (int salt = 1; salt <= 255; ++salt) {
      const auto number = static_cast<uint8_t>(salt);
      REQUIRE(namer.SaltedNameOf(first, number) != namer.SaltedNameOf(second, number));
    }
  }
}

TEST_CASE("colliding chunks still collide with a common suffix, so the salt is a prefix") {
  ChunkNamer namer = MakeNamer();
  for (const auto& [what, first, second, name] : Collisions()) {
    CAPTURE(what);
    // Chunks that begin with the colliding bytes and end with the same other bytes.
    const Bytes tail = RandomBytes(3, 8000);
    Bytes first_chunk = first;
    Bytes second_chunk = second;
    first_chunk.insert(first_chunk.end(), tail.begin(), tail.end());
    second_chunk.insert(second_chunk.end(), tail.begin(), tail.end());
    CHECK(namer.NameOf(first_chunk) == namer.NameOf(second_chunk));
    CHECK(namer.SaltedNameOf(first_chunk, 1) != namer.SaltedNameOf(second_chunk, 1));
  }
}

TEST_CASE("colliding chunks have different tags under a store's key") {
  TagKey::Secret secret;
  Random(4).Fill(secret);
  const TagKey key(secret);
  for (const auto& [what, first, second, name] : Collisions()) {
    CAPTURE(what, name);
    CHECK(key.TagOf(first) != key.TagOf(second));
  }
}

}  // namespace siltfs::testing
