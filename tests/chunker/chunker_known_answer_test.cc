// Cut points are part of the on-disk format. If a later version cut the same data differently, the
// new chunks would not be duplicates of the chunks in existing stores. The expected values come
// from an independent implementation of docs/chunker.md.
#include <vector>

#include "chunker/chunk_namer.h"
#include "chunker/chunker.h"
#include "store/base/coding.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct KnownAnswer {
  uint32_t min, avg, max;
  std::vector<uint64_t> first_cut_points;
  size_t chunks;
  const char* sha1;  // SHA-1 of all cut points as 64-bit little-endian numbers
};

const KnownAnswer kKnownAnswers[] = {
    {2048,
     8192,
     65536,
     {3652, 7888, 26080, 32322, 42546, 52174, 69556, 77102},
     116,
     "bb253863bb2cd6b4e8e1a67a367f63428022c1ff"},
    {1024,
     4096,
     8192,
     {3344, 4464, 7888, 16080, 20882, 26080, 27405, 32322},
     261,
     "0b940a685d4a19b986f91360dac8e71c22e698f9"},
    {256,
     512,
     1 << 20,
     {487, 1248, 1530, 2634, 3344, 3624, 4464, 4881},
     2066,
     "1f841bcadcf4ff316083b766f15865199785cc56"},
};

}  // namespace

TEST_CASE("the known-answer data are unchanged") {
  auto namer = ChunkNamer::Create({});
  REQUIRE_OK(namer);
  CHECK(namer->NameOf(RandomBytes(2024, 1 << 20)).ToHex() ==
        "a531d252c4d780df7c45ab3983a32656f3cf1e73");
}

TEST_CASE("the known-answer data have the expected cut points") {
  auto namer = ChunkNamer::Create({});
  REQUIRE_OK(namer);
  const Bytes data = RandomBytes(2024, 1 << 20);
  for (const KnownAnswer& known : kKnownAnswers) {
    CAPTURE(known.avg);
    auto tables = ChunkerTables::Create(TestParameters(known.min, known.avg, known.max));
    REQUIRE_OK(tables);
    std::vector<uint64_t> cut_points;
    Encoder encoded;
    uint64_t end = 0;
    for (uint32_t length : (*tables)->CutAll(data)) {
      end += length;
      cut_points.push_back(end);
      encoded.U64(end);
    }
    CHECK(cut_points.size() == known.chunks);
    cut_points.resize(known.first_cut_points.size());
    CHECK(cut_points == known.first_cut_points);
    CHECK(namer->NameOf(encoded.view()).ToHex() == known.sha1);
  }
}

}  // namespace siltfs::testing
