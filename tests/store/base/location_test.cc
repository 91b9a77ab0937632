#include "store/base/location.h"

#include <string>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Encoded = std::array<uint8_t, Location::kEncodedSize>;

TEST_CASE("a location has 12 bytes: segment 32 bits, ordinal 20, block offset 25, 19 zeros") {
  Encoded out;
  Location{0x01020304, 0x56789, 0x1abcdef}.EncodeTo(out);
  // 0x1abcdef << 20 | 0x56789, least significant byte first.
  REQUIRE(out == Encoded{0x04, 0x03, 0x02, 0x01, 0x89, 0x67, 0xf5, 0xde, 0xbc, 0x1a, 0x00, 0x00});
}

TEST_CASE("the largest location fills its fields and no more") {
  Encoded out;
  Location{0xffffffff, Location::kMaxOrdinal, Location::kMaxBlockOffset}.EncodeTo(out);
  REQUIRE(out == Encoded{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00, 0x00});
}

TEST_CASE("every location is decoded as it was encoded") {
  Random random(8);
  for (int i = 0; i < 10'000; ++i) {
    const Location location{static_cast<SegmentId>(random.Next()),
                            static_cast<uint32_t>(random.Below(Location::kMaxOrdinal + 1)),
                            static_cast<uint32_t>(random.Below(Location::kMaxBlockOffset + 1))};
    Encoded out;
    location.EncodeTo(out);
    REQUIRE(Location::Decode(out) == location);
  }
}

TEST_CASE("any 12 bytes decode to fields within their bounds") {
  Random random(9);
  for (int i = 0; i < 10'000; ++i) {
    Encoded in;
    random.Fill(in);
    const Location location = Location::Decode(in);
    REQUIRE(location.ordinal <= Location::kMaxOrdinal);
    REQUIRE(location.block_offset <= Location::kMaxBlockOffset);
  }
}

}  // namespace
}  // namespace siltfs
