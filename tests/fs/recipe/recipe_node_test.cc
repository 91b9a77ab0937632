// The encoding of recipe nodes, and the decoding of malformed bytes.
#include "fs/recipe/recipe_node.h"

#include <algorithm>

#include "tests/fs/recipe/recipe_test_support.h"
#include "tests/support/hex.h"

namespace siltfs::testing {
namespace {

RecipeTotals SumOf(const auto& items) {
  RecipeTotals totals;
  bool added = true;
  for (const auto& item : items) added = totals.Add(item) && added;
  if (!added) FAIL("invalid items");
  return totals;
}

Bytes LeafOf(const Entries& entries) { return EncodeNode(entries, SumOf(entries)); }
Bytes InnerOf(uint8_t level, const std::vector<RecipeChild>& children) {
  return EncodeNode(level, children, SumOf(children));
}

Entries GoldenEntries() {
  return {RecipeEntry::Chunk(NameFrom(1), 8192), RecipeEntry::Hole(uint64_t{1} << 40),
          RecipeEntry::Chunk(NameFrom(0x41), 0xabcdef)};
}
std::vector<RecipeChild> GoldenChildren() {
  return {{NameFrom(1), 0x1020, 0x123456, 80, 0x1000},
          {NameFrom(0x81), 41, uint64_t{1} << 33, 0, uint64_t{1} << 33}};
}

Bytes Encoded(const RecipeNode& node) {
  return node.level == 0 ? EncodeNode(node.entries, node.totals)
                         : EncodeNode(node.level, node.children, node.totals);
}

std::vector<Bytes> SampleNodes() {
  Random random(41);
  std::vector<RecipeChild> children;
  for (size_t i = 0; i < 70; ++i) {
    children.push_back({RandomName(random), static_cast<uint32_t>(41 + random.Below(12000)),
                        (1 << 20) + i, 60 + i, i});
  }
  return {LeafOf(GoldenEntries()), InnerOf(3, GoldenChildren()),
          LeafOf(Merged(RandomEntries(random, 130, {}))), InnerOf(1, children)};
}

TEST_CASE("a leaf node has the bytes of the format page") {
  const char* golden =
      "5346524e01000300efedab000001000002000000000000000000000000010000000020000102030405060708090a"
      "0b0c"
      "0d0e0f101112131401000000000001000000efcdab4142434445464748494a4b4c4d4e4f5051525354";
  CHECK(Hex(LeafOf(GoldenEntries())) == golden);
  const Result<RecipeNode> node = RecipeNode::Decode(FromHex(golden));
  REQUIRE_OK(node);
  CHECK(node->level == 0);
  CHECK(node->entries == GoldenEntries());
  CHECK(node->totals == SumOf(GoldenEntries()));
}

TEST_CASE("an inner node has the bytes of the format page") {
  const char* golden =
      "5346524e010302005634120002000000500000000000000000100000020000000102030405060708090a0b0c0d0e"
      "0f10"
      "11121314201000005634120000000000500000000000000000100000000000008182838485868788898a8b8c8d8e"
      "8f90"
      "9192939429000000000000000200000000000000000000000000000002000000";
  CHECK(Hex(InnerOf(3, GoldenChildren())) == golden);
  const Result<RecipeNode> node = RecipeNode::Decode(FromHex(golden));
  REQUIRE_OK(node);
  CHECK(node->level == 3);
  CHECK(node->children == GoldenChildren());
  CHECK(node->totals == SumOf(GoldenChildren()));
}

TEST_CASE("the largest nodes have the largest size that references allow") {
  const Bytes leaf = LeafOf(Entries(512, RecipeEntry::Chunk(NameFrom(1), 5)));
  CHECK(leaf.size() == RecipeChild::kMaxNodeBytes);
  REQUIRE_OK(RecipeNode::Decode(leaf));
  const Bytes inner =
      InnerOf(7, std::vector<RecipeChild>(256, RecipeChild{NameFrom(1), 56, 1, 1, 0}));
  CHECK(inner.size() == RecipeChild::kMaxNodeBytes);
  REQUIRE_OK(RecipeNode::Decode(inner));
}

TEST_CASE("between its minimum and maximum a node ends by the last byte of a name") {
  const auto chunk = [](uint8_t last) {
    ChunkName name = NameFrom(1);
    name.bytes.back() = last;
    return RecipeEntry::Chunk(name, 1);
  };
  const NodeCut leaf = NodeCut::OfLevel(0);
  CHECK_FALSE(leaf.After(63, chunk(0)));
  CHECK(leaf.After(64, chunk(0)));
  CHECK(leaf.After(64, chunk(0xc0)));
  CHECK_FALSE(leaf.After(64, chunk(0x20)));
  CHECK_FALSE(leaf.After(64, RecipeEntry::Hole(1)));
  CHECK_FALSE(leaf.After(511, chunk(1)));
  CHECK(leaf.After(512, chunk(1)));
  CHECK(leaf.After(512, RecipeEntry::Hole(1)));
  const auto child = [](uint8_t last) {
    RecipeChild node{NameFrom(1), 56, 1, 1, 0};
    node.name.bytes.back() = last;
    return node;
  };
  const NodeCut inner = NodeCut::OfLevel(5);
  CHECK_FALSE(inner.After(31, child(0)));
  CHECK(inner.After(32, child(0xe0)));
  CHECK_FALSE(inner.After(32, child(0x10)));
  CHECK_FALSE(inner.After(255, child(1)));
  CHECK(inner.After(256, child(1)));
}

TEST_CASE("a node that is cut short or has extra bytes is refused") {
  for (Bytes node : SampleNodes()) {
    REQUIRE_OK(RecipeNode::Decode(node));
    for (size_t size = 0; size < node.size(); ++size) {
      REQUIRE_CODE(RecipeNode::Decode(ByteView(node).first(size)), kCorruption);
    }
    node.push_back(0);
    REQUIRE_CODE(RecipeNode::Decode(node), kCorruption);
  }
}

TEST_CASE("a node with a flipped byte is refused or is another valid node") {
  for (const Bytes& node : SampleNodes()) {
    size_t refused = 0;
    for (size_t i = 0; i < node.size(); ++i) {
      for (uint8_t flip : {0x01, 0x02, 0x10, 0x80, 0xff}) {
        Bytes damaged = node;
        damaged[i] ^= flip;
        const Result<RecipeNode> decoded = RecipeNode::Decode(damaged);
        if (!decoded.ok()) {
          if (!decoded.status().Is(StatusCode::kCorruption)) FAIL(decoded.status().ToString());
          ++refused;
          continue;
        }
        if (Encoded(*decoded) != damaged) FAIL("byte " << i);
        const RecipeTotals sum =
            decoded->level == 0 ? SumOf(decoded->entries) : SumOf(decoded->children);
        if (sum != decoded->totals) FAIL("byte " << i);
      }
    }
    CHECK(refused > 5 * (RecipeChild::kNodeHeaderSize - 1));
  }
}

TEST_CASE("random bytes after a valid header do no harm") {
  Random random(17);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(RecipeChild::kNodeHeaderSize + random.Below(600));
    random.Fill(bytes);
    const Bytes header = LeafOf(GoldenEntries());
    std::copy(header.begin(), header.begin() + 6, bytes.begin());
    bytes[5] = static_cast<uint8_t>(random.Below(9));
    const Result<RecipeNode> decoded = RecipeNode::Decode(bytes);
    if (decoded.ok()) REQUIRE(Encoded(*decoded) == bytes);
  }
}

TEST_CASE("a node that breaks a rule is refused") {
  const auto refused_with = [](const Bytes& good, size_t at, uint8_t value) {
    REQUIRE_OK(RecipeNode::Decode(good));
    Bytes bytes = good;
    bytes[at] = value;
    REQUIRE_CODE(RecipeNode::Decode(bytes), kCorruption);
  };
  const Bytes leaf = LeafOf(GoldenEntries());
  SECTION("magic") { refused_with(leaf, 0, 'X'); }
  SECTION("version") { refused_with(leaf, 4, 2); }
  SECTION("level") { refused_with(InnerOf(7, GoldenChildren()), 5, 8); }
  SECTION("fewer items than stated") { refused_with(leaf, 6, 4); }
  SECTION("more items than stated") { refused_with(leaf, 6, 2); }
  SECTION("bytes covered") { refused_with(leaf, 8, 1); }
  SECTION("chunks") { refused_with(leaf, 16, 3); }
  SECTION("bytes in holes") { refused_with(leaf, 24, 1); }
  SECTION("kind") { refused_with(leaf, 32, 2); }
  SECTION("no items") {
    REQUIRE_CODE(RecipeNode::Decode(
                     FromHex("5346524e01000000000000000000000000000000000000000000000000000000")),
                 kCorruption);
  }
  SECTION("one leaf entry too many") {
    Bytes bytes = LeafOf(Entries(512, RecipeEntry::Chunk(NameFrom(1), 1)));
    bytes[6] = 1;  // 513
    bytes[8] = 1;
    bytes[16] = 1;
    bytes.insert(bytes.end(), bytes.end() - 24, bytes.end());
    REQUIRE_CODE(RecipeNode::Decode(bytes), kCorruption);
  }
  SECTION("two holes side by side") {
    const Entries holes{RecipeEntry::Hole(1), RecipeEntry::Hole(2)};
    REQUIRE_CODE(RecipeNode::Decode(LeafOf(holes)), kCorruption);
  }
}

TEST_CASE("a node that differs from its parent's reference is refused, and the error names it") {
  MemoryNodeStore nodes;
  const Bytes leaf = LeafOf(GoldenEntries());
  const Result<ChunkName> name = nodes.PutNode(leaf);
  REQUIRE_OK(name);
  const RecipeTotals totals = SumOf(GoldenEntries());
  const RecipeChild good{*name, static_cast<uint32_t>(leaf.size()), totals.covered_bytes,
                         totals.chunk_count, totals.hole_bytes};
  REQUIRE_OK(ReadNode(nodes, good, 0));
  const auto refused = [&](RecipeChild child, uint8_t level) {
    const Result<RecipeNode> node = ReadNode(nodes, child, level);
    REQUIRE_CODE(node, kCorruption);
    CHECK(node.status().ToString().find(name->ToHex()) != std::string::npos);
  };
  RecipeChild child = good;
  SECTION("level") { refused(good, 1); }
  SECTION("length") {
    ++child.node_bytes;
    refused(child, 0);
  }
  SECTION("bytes covered") {
    ++child.covered_bytes;
    refused(child, 0);
  }
  SECTION("chunks") {
    ++child.chunk_count;
    refused(child, 0);
  }
  SECTION("bytes in holes") {
    --child.hole_bytes;
    refused(child, 0);
  }
  SECTION("bytes that are no node") {
    nodes.nodes[*name] = std::make_shared<const Bytes>(leaf.size(), 0x5a);
    refused(good, 0);
  }
}

}  // namespace
}  // namespace siltfs::testing
