// The recipe as encoded in the inode.
#include "fs/recipe/recipe.h"

#include "tests/fs/recipe/recipe_test_support.h"
#include "tests/support/hex.h"

namespace siltfs::testing {
namespace {

struct Golden {
  const char* what;
  Recipe recipe;
  const char* hex;
};

std::vector<Golden> Goldens() {
  const RecipeChild first{NameFrom(1), 0x1020, 0x123456, 80, 0x1000};
  const RecipeChild holes{NameFrom(0x81), 41, uint64_t{1} << 33, 0, uint64_t{1} << 33};
  const RecipeChild higher{NameFrom(0x21), 3104, 0x1122334455, 5000, 0x100000};
  return {
      {"empty", {}, "010000"},
      {"height 0",
       {0,
        {RecipeEntry::Chunk(NameFrom(1), 8192), RecipeEntry::Hole(uint64_t{1} << 40),
         RecipeEntry::Chunk(NameFrom(0x41), 0xabcdef)},
        {}},
       "010003000020000102030405060708090a0b0c0d0e0f101112131401000000000001000000efcdab41424344454"
       "64748"
       "494a4b4c4d4e4f5051525354"},
      {"height 1",
       {1, {}, {first, holes}},
       "0101020102030405060708090a0b0c0d0e0f1011121314201000005634120000000000500000000000000000100"
       "00000"
       "0000008182838485868788898a8b8c8d8e8f9091929394290000000000000002000000000000000000000000000"
       "00002"
       "000000"},
      {"height 2",
       {2, {}, {higher}},
       "0102012122232425262728292a2b2c2d2e2f3031323334200c00005544332211000000881300000000000000001"
       "00000"
       "000000"},
  };
}

TEST_CASE("a recipe in the inode has the bytes of the format page") {
  for (const Golden& golden : Goldens()) {
    INFO(golden.what);
    CHECK(Hex(golden.recipe.Encode()) == golden.hex);
    const Result<Recipe> decoded = Recipe::Decode(FromHex(golden.hex));
    REQUIRE_OK(decoded);
    CHECK(*decoded == golden.recipe);
  }
}

TEST_CASE("a recipe's totals are the sums over its items") {
  const std::vector<Golden> goldens = Goldens();
  CHECK(goldens[0].recipe.totals() == RecipeTotals{0, 0, 0});
  CHECK(goldens[1].recipe.totals() ==
        RecipeTotals{8192 + (uint64_t{1} << 40) + 0xabcdef, 2, uint64_t{1} << 40});
  CHECK(goldens[2].recipe.size() == 0x123456 + (uint64_t{1} << 33));
  CHECK(goldens[2].recipe.chunk_count() == 80);
  CHECK(goldens[2].recipe.hole_bytes() == 0x1000 + (uint64_t{1} << 33));
}

TEST_CASE("a recipe is decoded from the middle of a record") {
  Encoder record;
  const Recipe recipe = Goldens()[1].recipe;
  recipe.EncodeTo(record);
  record.U32(77);
  Decoder in(record.view());
  const Result<Recipe> decoded = Recipe::DecodeFrom(in);
  REQUIRE_OK(decoded);
  CHECK(*decoded == recipe);
  CHECK(in.U32() == 77);
  CHECK(in.Done());
  REQUIRE_CODE(Recipe::Decode(record.view()), kCorruption);
}

TEST_CASE("a recipe cut short anywhere is refused") {
  for (const Golden& golden : Goldens()) {
    const Bytes bytes = golden.recipe.Encode();
    for (size_t size = 0; size < bytes.size(); ++size) {
      REQUIRE_CODE(Recipe::Decode(ByteView(bytes).first(size)), kCorruption);
    }
  }
}

TEST_CASE("a recipe with a flipped byte is refused or is another valid recipe") {
  for (const Golden& golden : Goldens()) {
    const Bytes bytes = golden.recipe.Encode();
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (uint8_t flip : {0x01, 0x10, 0x80, 0xff}) {
        Bytes damaged = bytes;
        damaged[i] ^= flip;
        const Result<Recipe> decoded = Recipe::Decode(damaged);
        if (decoded.ok()) REQUIRE(decoded->Encode() == damaged);
      }
    }
  }
}

TEST_CASE("a recipe that breaks a rule is refused") {
  const auto refused = [](const Recipe& recipe) {
    REQUIRE_CODE(Recipe::Decode(recipe.Encode()), kCorruption);
  };
  SECTION("unknown version") { REQUIRE_CODE(Recipe::Decode(FromHex("020000")), kCorruption); }
  SECTION("too high") { REQUIRE_CODE(Recipe::Decode(FromHex("010900")), kCorruption); }
  SECTION("high but without children") {
    REQUIRE_CODE(Recipe::Decode(FromHex("010100")), kCorruption);
  }
  SECTION("more entries than the inode holds") {
    Recipe recipe;
    for (uint8_t i = 0; i < 32; ++i) recipe.entries.push_back(RecipeEntry::Chunk(NameFrom(i), 1));
    Bytes bytes = recipe.Encode();
    REQUIRE_OK(Recipe::Decode(bytes));
    bytes[2] = 33;
    bytes.insert(bytes.end(), bytes.begin() + 3, bytes.begin() + 27);
    REQUIRE_CODE(Recipe::Decode(bytes), kCorruption);
  }
  SECTION("more children than the inode holds") {
    Recipe recipe{1, {}, std::vector<RecipeChild>(24, RecipeChild{NameFrom(1), 56, 1, 1, 0})};
    Bytes bytes = recipe.Encode();
    REQUIRE_OK(Recipe::Decode(bytes));
    bytes[2] = 25;
    bytes.insert(bytes.end(), bytes.begin() + 3, bytes.begin() + 51);
    REQUIRE_CODE(Recipe::Decode(bytes), kCorruption);
  }
  SECTION("an empty chunk") { refused({0, {RecipeEntry::Chunk(NameFrom(1), 0)}, {}}); }
  SECTION("an empty hole") { refused({0, {RecipeEntry::Hole(0)}, {}}); }
  SECTION("two holes side by side") {
    refused({0, {RecipeEntry::Hole(1), RecipeEntry::Hole(1)}, {}});
  }
  SECTION("larger than a file may be") {
    refused({0, {RecipeEntry::Hole(kMaxRecipeBytes), RecipeEntry::Chunk(NameFrom(1), 1)}, {}});
    refused({0, {RecipeEntry::Hole(~uint64_t{0}), RecipeEntry::Chunk(NameFrom(1), 1)}, {}});
  }
  SECTION("children whose sizes no node can have") {
    const RecipeChild good{NameFrom(1), 4096, 1 << 20, 100, 1 << 10};
    const auto with = [&](auto change) {
      RecipeChild child = good;
      change(child);
      return Recipe{1, {}, {child}};
    };
    REQUIRE_OK(Recipe::Decode(Recipe{1, {}, {good}}.Encode()));
    refused(with([](RecipeChild& child) { child.node_bytes = 40; }));
    refused(with([](RecipeChild& child) { child.node_bytes = 32 + 512 * 24 + 1; }));
    refused(with([](RecipeChild& child) {
      child.covered_bytes = 0;
      child.hole_bytes = 0;
      child.chunk_count = 0;
    }));
    refused(with([](RecipeChild& child) { child.covered_bytes = kMaxRecipeBytes + 1; }));
    refused(with([](RecipeChild& child) { child.hole_bytes = child.covered_bytes + 1; }));
    refused(with([](RecipeChild& child) { child.chunk_count = child.covered_bytes; }));
    refused(with([](RecipeChild& child) { child.chunk_count = 0; }));
    refused(with([](RecipeChild& child) { child.chunk_count = ~uint64_t{0}; }));
  }
  SECTION("children that sum up beyond the largest file") {
    const RecipeChild half{NameFrom(1), 41, kMaxRecipeBytes / 2 + 1, 0, kMaxRecipeBytes / 2 + 1};
    refused({1, {}, {half, half}});
  }
}

}  // namespace
}  // namespace siltfs::testing
