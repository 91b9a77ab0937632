// Hostile and damaged segments: after any change of a byte, readers return the right bytes or an
// error.
#include "store/segment/segment_scan.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

// The results of all reads of a segment. `chunks` has each chunk's name and bytes, and "error" for
// an unreadable block.
struct Reading {
  bool detected = false;  // a read reported damage
  std::vector<std::string> chunks;
};

Reading ReadEverything(TestStore& store, const std::vector<BlockPlace>& places) {
  Reading reading;
  auto reader = store.Open(1);
  auto note = [&](const auto& result) {
    if (result.ok()) return true;
    REQUIRE(StatusOf(result).Is(StatusCode::kCorruption));
    reading.detected = true;
    return false;
  };
  note(reader->ReadHeader());
  // A segment without its trailer looks unsealed. Metadata records that the segment was sealed, so
  // this counts as detected damage.
  auto sealed = reader->IsSealed();
  if (note(sealed)) {
    if (!*sealed) reading.detected = true;
    if (*sealed) note(reader->ReadFooter());
  }
  for (const BlockPlace& place : places) {
    auto block = reader->ReadBlock(place.block_offset);
    if (!note(block)) {
      reading.chunks.push_back("error");
      continue;
    }
    for (size_t i = 0; i < (*block)->chunk_count(); ++i) {
      reading.chunks.push_back((*block)->records()[i].name.ToHex() +
                               std::string(AsText((*block)->chunk(i))));
    }
    CHECK(Must(reader->ReadBlockHead(place.block_offset)) == (*block)->head());
  }
  return reading;
}

struct Sealed : TestStore {
  explicit Sealed(const Compression& compression) {
    auto writer = Create(1);
    places = AppendAll(*writer, codec, kSmallSegment, compression);
    REQUIRE_OK(writer->Seal());
    bytes = FileBytes(1);
    data_end = writer->totals().data_end;
  }
  // The number of the byte's block; places.size() for header and footer.
  size_t BlockOf(uint64_t at) const {
    if (at < kSegmentHeaderSize || at >= data_end) return places.size();
    size_t i = 0;
    while (i + 1 < places.size() && places[i + 1].block_offset <= at) ++i;
    return i;
  }
  std::vector<BlockPlace> places;
  std::string bytes;
  uint64_t data_end = 0;
};

}  // namespace

TEST_CASE("Every flipped byte of a sealed segment is detected, and costs at most its block") {
  for (const Compression& compression : {kPlain, kZstd3}) {
    Sealed store(compression);
    const Reading whole = ReadEverything(store, store.places);
    REQUIRE_FALSE(whole.detected);
    REQUIRE(whole.chunks.size() == 8);
    size_t undetected = 0;
    for (uint64_t at = 0; at < store.bytes.size(); ++at) {
      for (uint8_t mask : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xff}}) {
        CAPTURE(at, mask);
        store.FlipByte(1, at, mask);
        Reading reading = ReadEverything(store, store.places);
        undetected += reading.detected ? 0 : 1;
        std::vector<std::string> expected;
        for (size_t i = 0; i < store.places.size(); ++i) {
          if (i == store.BlockOf(at)) {
            expected.push_back("error");
          } else {
            auto first = whole.chunks.begin() + store.places[i].first_ordinal;
            expected.insert(expected.end(), first,
                            first + static_cast<ptrdiff_t>(kSmallSegment[i].size()));
          }
        }
        REQUIRE(reading.chunks == expected);
        store.FlipByte(1, at, mask);
      }
    }
    // Checksums cover every byte of the format, including reserved ones.
    CHECK(undetected == 0);
  }
}

TEST_CASE("A truncated sealed segment never looks sealed, and its whole blocks stay readable") {
  Sealed store(kZstd3);
  const Reading whole = ReadEverything(store, store.places);
  for (size_t size = 0; size < store.bytes.size(); ++size) {
    CAPTURE(size);
    store.SetFileBytes(1, std::string_view(store.bytes).substr(0, size));
    Reading reading = ReadEverything(store, store.places);
    CHECK(reading.detected);
    size_t readable = 0;
    for (const std::string& chunk : reading.chunks) {
      if (chunk == "error") continue;
      CHECK(chunk == whole.chunks[readable]);
      ++readable;
    }
    size_t expected = 0;
    for (size_t i = 0; i < store.places.size(); ++i) {
      uint64_t end =
          i + 1 < store.places.size() ? store.places[i + 1].block_offset : store.data_end;
      if (size >= end) expected += kSmallSegment[i].size();
    }
    CHECK(readable == expected);
  }
}

TEST_CASE("Bytes appended to a sealed segment are detected") {
  Sealed store(kZstd3);
  for (const std::string& more :
       {std::string(1, '\0'), std::string(64, '\0'), store.bytes.substr(store.data_end)}) {
    store.SetFileBytes(1, store.bytes + more);
    CHECK(ReadEverything(store, store.places).detected);
  }
}

TEST_CASE("Random damage never yields wrong bytes") {
  Sealed store(kZstd3);
  const Reading whole = ReadEverything(store, store.places);
  Random random(42);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::string bytes = store.bytes;
    // Overwrites a range with noise, zeros, or bytes from elsewhere in the file.
    size_t at = random.Below(bytes.size());
    size_t length = 1 + random.Below(std::min<size_t>(bytes.size() - at, 200));
    size_t from = random.Below(bytes.size() - length + 1);
    uint64_t kind = random.Below(3);
    for (size_t i = 0; i < length; ++i) {
      bytes[at + i] = kind == 0   ? static_cast<char>(random.Next())
                      : kind == 1 ? '\0'
                                  : store.bytes[from + i];
    }
    store.SetFileBytes(1, bytes);
    Reading reading = ReadEverything(store, store.places);
    CHECK(reading.detected == (bytes != store.bytes));
    for (const std::string& chunk : reading.chunks) {
      if (chunk == "error") continue;
      CHECK(std::find(whole.chunks.begin(), whole.chunks.end(), chunk) != whole.chunks.end());
    }
  }
}

TEST_CASE("Reading a part of a damaged footer gives an error or at most the requested entries") {
  Sealed store(kZstd3);
  for (uint64_t at = store.data_end; at < store.bytes.size(); ++at) {
    CAPTURE(at);
    store.FlipByte(1, at, 0xff);
    auto reader = store.Open(1);
    auto window = reader->ReadFooterWindow(1, 4);
    if (window.ok()) CHECK(window->size() == 4);
    auto place = reader->FindBlock(5);
    if (place.ok() && place->has_value()) {
      // A wrong hint is detected when the block is read.
      auto head = reader->ReadBlockHead((*place)->block_offset);
      if (head.ok())
        CHECK(std::find(store.places.begin(), store.places.end(),
                        BlockPlace{(*place)->block_offset, head->first_ordinal}) !=
              store.places.end());
    }
    store.FlipByte(1, at, 0xff);
  }
}
