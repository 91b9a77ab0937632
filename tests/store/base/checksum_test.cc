#include "store/base/checksum.h"

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

// Returns the first bytes of the buffer of xxHash's own sanity tests. The expected checksums below
// come from these tests, too.
Bytes SanityBytes(size_t size) {
  Bytes bytes(size);
  uint64_t generator = 0x9E3779B1U;
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(generator >> 56);
    generator *= 0x9E3779B185EBCA8DU;
  }
  return bytes;
}

TEST_CASE("the checksum is XXH3-64 and gives the published answers") {
  constexpr uint64_t kSeed = 0x9E3779B185EBCA8DU;
  REQUIRE(Checksum({}) == 0x2D06800538D394C2U);
  REQUIRE(Checksum({}, kSeed) == 0xA8A6B918B2F0364AU);
  REQUIRE(Checksum(SanityBytes(1)) == 0xC44BDFF4074EECDBU);
  REQUIRE(Checksum(SanityBytes(1), kSeed) == 0x032BE332DD766EF8U);
  REQUIRE(Checksum(SanityBytes(6)) == 0x27B56A84CD2D7325U);
  REQUIRE(Checksum(SanityBytes(12)) == 0xA713DAF0DFBB77E7U);
  REQUIRE(Checksum(SanityBytes(24)) == 0xA3FE70BF9D3510EBU);
  REQUIRE(Checksum(SanityBytes(48)) == 0x397DA259ECBA1F11U);
  REQUIRE(Checksum(SanityBytes(80)) == 0xBCDEFBBB2C47C90AU);
  REQUIRE(Checksum(SanityBytes(195)) == 0xCD94217EE362EC3AU);
}

TEST_CASE("the checksum of two ranges is that of their concatenation") {
  Random random(3);
  for (size_t size : {0, 1, 7, 64, 240, 241, 1'000, 5'000}) {
    Bytes all(size);
    random.Fill(all);
    for (int i = 0; i < 5; ++i) {
      const size_t cut = random.Below(size + 1);
      INFO("cut " << size << " at " << cut);
      ByteView view(all);
      REQUIRE(Checksum(view.first(cut), view.subspan(cut), 17) == Checksum(view, 17));
    }
  }
}

TEST_CASE("any flipped bit changes the checksum") {
  Bytes bytes = SanityBytes(100);
  const uint64_t whole = Checksum(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    REQUIRE(Checksum(bytes) != whole);
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
  }
}

TEST_CASE("the streaming checksum equals that of the bytes so far, at every cut") {
  const std::string text = "a text that is cut into pieces";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    StreamingChecksum checksum;
    REQUIRE(checksum.value() == Checksum({}));
    checksum.Add(AsBytes(text).first(cut));
    REQUIRE(checksum.value() == Checksum(AsBytes(text).first(cut)));
    checksum.Add(AsBytes(text).subspan(cut));
    REQUIRE(checksum.value() == Checksum(AsBytes(text)));
  }
}

}  // namespace
}  // namespace siltfs
