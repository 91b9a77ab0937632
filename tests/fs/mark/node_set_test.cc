#include "fs/mark/node_set.h"

#include <set>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("a set of nodes holds each name once, however many there are") {
  const size_t name_bytes = GENERATE(size_t{20}, size_t{12}, size_t{8});
  // The names have any first byte, or only a few first bytes, so that many names share a part of
  // the set.
  const uint8_t mask = GENERATE(uint8_t{0xff}, uint8_t{0x01}, uint8_t{0x00});
  INFO(name_bytes << " bytes, mask " << int{mask});
  Random random(1);
  NodeSet set(name_bytes);
  std::set<ChunkName> model;
  std::vector<ChunkName> names;
  for (int i = 0; i < 20'000; ++i) {
    ChunkName name;
    random.Fill(name.bytes);
    name.bytes[0] &= mask;
    if (random.OneIn(4) && !names.empty()) name = names[random.Below(names.size())];
    names.push_back(name);
    REQUIRE(set.Insert(name) == model.insert(name).second);
  }
  for (const ChunkName& name : names) REQUIRE_FALSE(set.Insert(name));
  CHECK(set.size() == model.size());
}

TEST_CASE("names of zeros, and names with the same home slot, are kept like others") {
  NodeSet set(NodeSet::kWholeNames);
  for (int first = 0; first < 256; ++first) {
    ChunkName name{};
    name.bytes[0] = static_cast<uint8_t>(first);
    REQUIRE(set.Insert(name));
    REQUIRE_FALSE(set.Insert(name));
  }
  // Names that are equal except for their last bytes.
  for (int last = 1; last < 1000; ++last) {
    ChunkName name{};
    name.bytes[18] = static_cast<uint8_t>(last >> 8);
    name.bytes[19] = static_cast<uint8_t>(last);
    REQUIRE(set.Insert(name));
  }
  CHECK(set.size() == 256 + 999);
}

TEST_CASE("whole names are distinguished by any byte, short ones by the first twelve") {
  for (size_t byte = 0; byte < ChunkName::kSize; ++byte) {
    ChunkName name;
    name.bytes.fill(7);
    ChunkName other = name;
    other.bytes[byte] ^= 1;
    NodeSet whole(NodeSet::kWholeNames);
    NodeSet cut(NodeSet::kShortNames);
    REQUIRE((whole.Insert(name) && cut.Insert(name)));
    CHECK(whole.Insert(other));
    CHECK(cut.Insert(other) == (byte < 12));
  }
}

}  // namespace siltfs::testing
