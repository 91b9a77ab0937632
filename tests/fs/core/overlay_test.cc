// An overlay is compared with a model of one cell per byte: its bytes after any sequence of
// changes, its counts, and its extents in metadata.
#include "fs/content/overlay.h"

#include <fmt/format.h>

#include <map>

#include "fs/records/schema.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kInode = 7;
constexpr uint64_t kSpace = 600'000;

// One byte of the overlay.
struct Cell {
  OverlayPiece::Kind kind = OverlayPiece::Kind::kAbsent;
  uint8_t byte = 0;       // kPlain
  uint32_t chunk = 0;     // kChunk: the number of the chunk
  uint32_t in_chunk = 0;  // kChunk: the offset in the chunk
  bool operator==(const Cell&) const = default;
};

ChunkName NameOf(uint32_t chunk) {
  ChunkName name;
  for (size_t i = 0; i < 4; ++i) name.bytes[i] = static_cast<uint8_t>(chunk >> (8 * i));
  return name;
}
uint32_t NumberOf(const ChunkName& name) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number |= static_cast<uint32_t>(name.bytes[i]) << (8 * i);
  return number;
}

std::vector<Cell> CellsOf(const Overlay& overlay) {
  std::vector<Cell> cells(kSpace);
  uint64_t at = 0;
  overlay.Visit(0, kSpace, [&](const OverlayPiece& piece) {
    REQUIRE(piece.offset == at);
    REQUIRE(piece.length > 0);
    for (uint64_t i = 0; i < piece.length; ++i) {
      Cell& cell = cells[at + i];
      cell.kind = piece.kind;
      if (piece.kind == OverlayPiece::Kind::kPlain) cell.byte = piece.plain[i];
      if (piece.kind == OverlayPiece::Kind::kChunk) {
        cell.chunk = NumberOf(piece.slice.name);
        cell.in_chunk = piece.slice.skip + static_cast<uint32_t>(i);
      }
    }
    at += piece.length;
    return true;
  });
  REQUIRE(at == kSpace);
  return cells;
}

// An overlay, the cells that it should equal, and the table of extents in metadata.
class Subject {
 public:
  explicit Subject(uint64_t seed) : random_(seed), cells_(kSpace) {}

  void Change() {
    const uint64_t begin = random_.Below(kSpace);
    static constexpr uint64_t kSizes[] = {1, 60, 5000, 70'000, 400'000};
    const uint64_t length = std::min(1 + random_.Below(kSizes[random_.Below(5)]), kSpace - begin);
    switch (random_.Below(5)) {
      case 0:
        overlay.Erase(begin, begin + length);
        std::fill_n(At(begin), length, Cell{});
        break;
      case 1:
        overlay.PutHole(begin, length);
        std::fill_n(At(begin), length, Cell{.kind = OverlayPiece::Kind::kHole});
        break;
      case 2:
        PutSlices(begin, length);
        break;
      default:
        PutRaw(begin, length);
    }
  }

  void PutRaw(uint64_t begin, uint64_t length) {
    Bytes bytes(length);
    random_.Fill(bytes);
    overlay.PutRaw(begin, bytes);
    for (uint64_t i = 0; i < length; ++i)
      cells_[begin + i] = {.kind = OverlayPiece::Kind::kPlain, .byte = bytes[i]};
  }

  // Puts whole chunks and parts of chunks.
  void PutSlices(uint64_t begin, uint64_t length) {
    std::vector<ChunkSlice> slices;
    for (uint64_t at = begin; at < begin + length;) {
      ChunkSlice slice;
      const uint32_t chunk = next_chunk_++;
      slice.name = NameOf(chunk);
      slice.length =
          static_cast<uint32_t>(std::min<uint64_t>(1 + random_.Below(2000), begin + length - at));
      slice.skip = random_.OneIn(4) ? static_cast<uint32_t>(random_.Below(100)) : 0;
      slice.chunk_length = slice.skip + slice.length +
                           (random_.OneIn(4) ? static_cast<uint32_t>(random_.Below(9)) : 0);
      lengths_[chunk] = slice.chunk_length;
      for (uint32_t i = 0; i < slice.length; ++i) {
        cells_[at + i] = {
            .kind = OverlayPiece::Kind::kChunk, .chunk = chunk, .in_chunk = slice.skip + i};
      }
      at += slice.length;
      slices.push_back(slice);
    }
    overlay.PutSlices(begin, slices);
  }

  // The table in metadata after the overlay's changes have been applied to it.
  const std::map<std::string, std::string>& Table() {
    std::vector<Mutation> mutations;
    overlay.TakeMutations(kInode, mutations);
    for (const Mutation& mutation : mutations) {
      if (mutation.value) {
        table_[mutation.key] = *mutation.value;
      } else {
        table_.erase(mutation.key);
      }
    }
    mutations.clear();
    overlay.TakeMutations(kInode, mutations);
    REQUIRE(mutations.empty());
    return table_;
  }

  // Returns whether a chunk or a hole ends at `offset`. A chunk counts only if all of its bytes lie
  // before `offset`, in order.
  bool EndsAt(uint64_t offset) const {
    if (offset == 0) return false;
    const Cell& last = cells_[offset - 1];
    if (last.kind == OverlayPiece::Kind::kHole)
      return offset == kSpace || cells_[offset].kind != OverlayPiece::Kind::kHole;
    if (last.kind != OverlayPiece::Kind::kChunk) return false;
    const uint32_t length = lengths_.at(last.chunk);
    if (last.in_chunk + 1 != length || offset < length) return false;
    for (uint32_t i = 0; i < length; ++i) {
      const Cell& cell = cells_[offset - length + i];
      if (cell.chunk != last.chunk || cell.in_chunk != i) return false;
    }
    return true;
  }

  const std::vector<Cell>& cells() const { return cells_; }
  Random& random() { return random_; }

  Overlay overlay;

 private:
  std::vector<Cell>::iterator At(uint64_t offset) {
    return cells_.begin() + static_cast<ptrdiff_t>(offset);
  }

  Random random_;
  std::vector<Cell> cells_;
  std::map<uint32_t, uint32_t> lengths_;  // of the chunks
  std::map<std::string, std::string> table_;
  uint32_t next_chunk_ = 1;
};

Overlay LoadFrom(const std::map<std::string, std::string>& table) {
  Overlay overlay;
  for (const auto& [key, value] : table) {
    auto parts = ParseNumberedKey(Table::kOverlay, key);
    REQUIRE(parts);
    REQUIRE(parts->inode == kInode);
    auto extent = OverlayExtent::Decode(value);
    REQUIRE_OK(extent);
    REQUIRE(parts->number >= overlay.end());  // extents of a file never overlap
    overlay.Load(parts->number, *extent);
  }
  return overlay;
}

}  // namespace

TEST_CASE("an overlay has the bytes put last, byte by byte") {
  const uint64_t seed = GENERATE(range(1, 9));
  INFO("seed " << seed);
  Subject subject(seed);
  for (int round = 0; round < 12; ++round) {
    for (int change = 0; change < 10; ++change) subject.Change();
    INFO("round " << round);
    REQUIRE((CellsOf(subject.overlay) == subject.cells()));
  }
}

TEST_CASE("an overlay counts its bytes and ends where its last byte does") {
  const uint64_t seed = GENERATE(range(20, 26));
  INFO("seed " << seed);
  Subject subject(seed);
  for (int round = 0; round < 12; ++round) {
    for (int change = 0; change < 6; ++change) subject.Change();
    uint64_t plain = 0;
    uint64_t chunk = 0;
    uint64_t end = 0;
    std::vector<Overlay::Range> ranges;
    for (uint64_t i = 0; i < kSpace; ++i) {
      const OverlayPiece::Kind kind = subject.cells()[i].kind;
      if (kind == OverlayPiece::Kind::kPlain) ++plain;
      if (kind == OverlayPiece::Kind::kChunk) ++chunk;
      if (kind == OverlayPiece::Kind::kAbsent) continue;
      if (end != i || ranges.empty()) ranges.push_back({i, i});
      end = ranges.back().end = i + 1;
    }
    uint64_t slices = 0;
    subject.overlay.Visit(0, kSpace, [&slices](const OverlayPiece& piece) {
      if (piece.kind == OverlayPiece::Kind::kChunk) ++slices;
      return true;
    });
    REQUIRE(subject.overlay.plain_bytes() == plain);
    REQUIRE(subject.overlay.data_bytes() == plain + chunk);
    REQUIRE(subject.overlay.slices() == slices);
    REQUIRE(subject.overlay.end() == end);
    REQUIRE(subject.overlay.empty() == (end == 0));
    REQUIRE((subject.overlay.CoveredRanges({0, ~uint64_t{0}}) == ranges));
  }
}

TEST_CASE("a visit of a part of an overlay sees that part and stops on request") {
  Subject subject(3);
  for (int change = 0; change < 60; ++change) subject.Change();
  const std::vector<Cell>& cells = subject.cells();
  for (int i = 0; i < 200; ++i) {
    const uint64_t begin = subject.random().Below(kSpace);
    const uint64_t end = begin + subject.random().Below(std::min<uint64_t>(3000, kSpace - begin));
    uint64_t at = begin;
    subject.overlay.Visit(begin, end, [&](const OverlayPiece& piece) {
      REQUIRE(piece.offset == at);
      REQUIRE(piece.kind == cells[at].kind);
      if (piece.kind == OverlayPiece::Kind::kChunk) REQUIRE(piece.slice.skip == cells[at].in_chunk);
      if (piece.kind == OverlayPiece::Kind::kPlain) REQUIRE(piece.plain[0] == cells[at].byte);
      at += piece.length;
      return true;
    });
    REQUIRE(at == end);
    int visits = 0;
    subject.overlay.Visit(begin, kSpace, [&visits](const OverlayPiece&) {
      ++visits;
      return false;
    });
    REQUIRE(visits == 1);
  }
}

TEST_CASE("the run of raw bytes around an offset ends where raw bytes end") {
  const uint64_t seed = GENERATE(range(4, 10));
  Subject subject(seed);
  for (int change = 0; change < 80; ++change) subject.Change();
  subject.PutRaw(1000, 100'000);
  subject.PutRaw(90'000, 50'000);
  const std::vector<Cell>& cells = subject.cells();
  auto plain = [&cells](uint64_t at) { return cells[at].kind == OverlayPiece::Kind::kPlain; };
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = subject.random().Below(kSpace);
    Overlay::Range expected{offset, offset};
    if (plain(offset)) {
      ++found;
      while (expected.begin > 0 && plain(expected.begin - 1)) --expected.begin;
      while (expected.end < kSpace && plain(expected.end)) ++expected.end;
    }
    REQUIRE((subject.overlay.RawRunAt(offset) == expected));
  }
  REQUIRE(found > 30);
}

TEST_CASE("a boundary is where a whole chunk or a hole ends") {
  const uint64_t seed = GENERATE(range(40, 44));
  INFO("seed " << seed);
  Subject subject(seed);
  for (int change = 0; change < 40; ++change) subject.Change();
  subject.PutSlices(100'000, 100'000);
  subject.PutRaw(150'000, 100);
  int boundaries = 0;
  for (uint64_t offset = 0; offset < kSpace; ++offset) {
    const bool expected = subject.EndsAt(offset);
    boundaries += expected ? 1 : 0;
    // A hole that was put in two pieces may have two ends.
    const bool within_hole = offset > 0 &&
                             subject.cells()[offset].kind == OverlayPiece::Kind::kHole &&
                             subject.cells()[offset - 1].kind == OverlayPiece::Kind::kHole;
    if (within_hole) continue;
    if (subject.overlay.BoundaryAt(offset) != expected) FAIL("at " << offset);
  }
  REQUIRE(boundaries > 20);
}

TEST_CASE("an overlay's mutations load as the same overlay") {
  const uint64_t seed = GENERATE(range(60, 68));
  INFO("seed " << seed);
  Subject subject(seed);
  for (int round = 0; round < 20; ++round) {
    const uint64_t changes = 1 + subject.random().Below(6);
    for (uint64_t change = 0; change < changes; ++change) subject.Change();
    const Overlay loaded = LoadFrom(subject.Table());
    if (round % 4 == 0) REQUIRE((CellsOf(loaded) == subject.cells()));
    REQUIRE(loaded.plain_bytes() == subject.overlay.plain_bytes());
    REQUIRE(loaded.data_bytes() == subject.overlay.data_bytes());
    REQUIRE(loaded.slices() == subject.overlay.slices());
    REQUIRE((loaded.CoveredRanges({0, ~uint64_t{0}}) ==
             subject.overlay.CoveredRanges({0, ~uint64_t{0}})));
    if (round % 5 == 0) {  // continue with the loaded overlay
      subject.overlay = LoadFrom(subject.Table());
    }
  }
}

TEST_CASE("no extent grows beyond its bounds, however it was made") {
  Subject subject(80);
  auto check = [&subject] {
    for (const auto& [key, value] : subject.Table()) {
      auto extent = OverlayExtent::Decode(value);
      REQUIRE_OK(extent);
      if (extent->kind == OverlayExtent::Kind::kPlain)
        REQUIRE(extent->plain.size() <= OverlayExtent::kMaxPlainBytes);
      REQUIRE(extent->slices.size() <= OverlayExtent::kMaxSlices);
    }
  };
  SECTION("one large write") { subject.PutRaw(0, 500'000); }
  SECTION("many small ones in a row") {
    for (uint64_t at = 0; at + 4096 <= kSpace; at += 4096) subject.PutRaw(at, 4096);
  }
  SECTION("many chunks at once") { subject.PutSlices(0, kSpace); }
  SECTION("many chunks one after another") {
    for (uint64_t at = 0; at + 1500 <= kSpace; at += 1500) subject.PutSlices(at, 1500);
  }
  SECTION("at random") {
    for (int change = 0; change < 200; ++change) subject.Change();
  }
  check();
}

TEST_CASE("an append to a long overlay touches the keys at its end only") {
  Subject subject(90);
  for (uint64_t at = 0; at < 500'000; at += 1000) subject.PutSlices(at, 1000);
  subject.Table();
  subject.PutSlices(500'000, 1000);
  std::vector<Mutation> mutations;
  subject.overlay.TakeMutations(kInode, mutations);
  REQUIRE(mutations.size() <= 2);
}

TEST_CASE("a hole may be as long as the longest file") {
  Overlay overlay;
  const uint64_t max = kMaxRecipeBytes;
  overlay.PutHole(0, max);
  overlay.PutRaw(max / 2, Bytes(10, 'x'));
  REQUIRE(overlay.end() == max);
  std::vector<Mutation> mutations;
  overlay.TakeMutations(kInode, mutations);
  REQUIRE(mutations.size() == 3);
  for (const Mutation& mutation : mutations) REQUIRE_OK(OverlayExtent::Decode(*mutation.value));
}

TEST_CASE("CoveredRanges returns only the parts that lie in the requested range") {
  Overlay overlay;
  overlay.PutRaw(100, Bytes(50, 1));
  overlay.PutHole(150, 50);
  overlay.PutRaw(300, Bytes(100, 2));
  using Ranges = std::vector<Overlay::Range>;
  CHECK((overlay.CoveredRanges({0, 1000}) == Ranges{{100, 200}, {300, 400}}));
  CHECK((overlay.CoveredRanges({120, 350}) == Ranges{{120, 200}, {300, 350}}));
  CHECK((overlay.CoveredRanges({160, 170}) == Ranges{{160, 170}}));
  CHECK(overlay.CoveredRanges({200, 300}).empty());
  CHECK(overlay.CoveredRanges({400, 1000}).empty());
  CHECK(overlay.CoveredRanges({130, 130}).empty());
}

TEST_CASE("StretchFrom returns a range with no more extents and bytes than one fold may take") {
  Overlay overlay;
  for (uint64_t i = 0; i < 10; ++i) overlay.PutRaw(i * 1000, Bytes(100, 1));
  CHECK((overlay.StretchFrom(0, 3, 1u << 20) == Overlay::Range{0, 2100}));
  CHECK((overlay.StretchFrom(1, 3, 1u << 20) == Overlay::Range{1000, 3100}));
  CHECK((overlay.StretchFrom(0, 100, 250) == Overlay::Range{0, 1100}));
  CHECK((overlay.StretchFrom(0, 100, 1) == Overlay::Range{0, 100}));  // at least one extent
  CHECK((overlay.StretchFrom(8000, 100, 1u << 20) == Overlay::Range{8000, 9100}));
  CHECK(overlay.StretchFrom(9001, 100, 1u << 20).size() == 0);

  // A fold only refers to whole chunks, so they do not count as bytes. It must cut parts of chunks
  // again, so these count.
  Overlay chunks;
  const ChunkSlice whole{.name = {}, .chunk_length = 8000, .skip = 0, .length = 8000};
  const ChunkSlice part{.name = {}, .chunk_length = 8000, .skip = 1, .length = 7000};
  chunks.PutSlices(0, std::vector<ChunkSlice>(1000, whole));
  CHECK(chunks.StretchFrom(0, 1, 100'000).end == chunks.end());
  Overlay parts;
  parts.PutSlices(0, std::vector<ChunkSlice>(1000, part));
  CHECK(parts.StretchFrom(0, 1, 1'000'000).end < parts.end() / 2);
}

}  // namespace siltfs::testing
