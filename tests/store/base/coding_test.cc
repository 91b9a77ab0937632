#include "store/base/coding.h"

#include <limits>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

std::string Hex(ByteView bytes) {
  std::string hex;
  for (uint8_t byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST_CASE("numbers are little-endian, in keys big-endian") {
  REQUIRE(Hex(Encoder().U8(0x01).view()) == "01");
  REQUIRE(Hex(Encoder().U16(0x0102).view()) == "0201");
  REQUIRE(Hex(Encoder().U24(0x010203).view()) == "030201");
  REQUIRE(Hex(Encoder().U32(0x01020304).view()) == "04030201");
  REQUIRE(Hex(Encoder().U64(0x0102030405060708).view()) == "0807060504030201");
  REQUIRE(Hex(Encoder().I64(-2).view()) == "feffffffffffffff");
  REQUIRE(Hex(Encoder().BigU32(0x01020304).view()) == "01020304");
  REQUIRE(Hex(Encoder().BigU64(0x0102030405060708).view()) == "0102030405060708");
}

TEST_CASE("raw bytes, texts and zeros are encoded") {
  REQUIRE(Hex(Encoder().Raw("ab").view()) == "6162");
  REQUIRE(Hex(Encoder().Text16("ab").view()) == "02006162");
  REQUIRE(Hex(Encoder().Zeros(3).view()) == "000000");
}

TEST_CASE("everything encoded is decoded") {
  constexpr auto kMax64 = std::numeric_limits<uint64_t>::max();
  Encoder encoder;
  encoder.U8(0xff)
      .U16(0xffff)
      .U24(0xffffff)
      .U32(0xffffffff)
      .U64(kMax64)
      .I64(-5)
      .BigU32(7)
      .BigU64(kMax64 - 1);
  encoder.Text16("name").Raw("raw").Zeros(2);
  Decoder decoder(encoder.view());
  REQUIRE(decoder.U8() == 0xff);
  REQUIRE(decoder.U16() == 0xffff);
  REQUIRE(decoder.U24() == 0xffffff);
  REQUIRE(decoder.U32() == 0xffffffff);
  REQUIRE(decoder.U64() == kMax64);
  REQUIRE(decoder.I64() == -5);
  REQUIRE(decoder.BigU32() == 7);
  REQUIRE(decoder.BigU64() == kMax64 - 1);
  REQUIRE(decoder.Text16() == "name");
  REQUIRE(AsText(decoder.Raw(3)) == "raw");
  REQUIRE_FALSE(decoder.Done());
  REQUIRE(decoder.remaining() == 2);
  decoder.Skip(2);
  REQUIRE(decoder.Done());
}

TEST_CASE("a read past the end yields zero and makes the decoder fail permanently") {
  const Bytes three = {1, 2, 3};
  Decoder decoder(three);
  REQUIRE(decoder.U32() == 0);
  REQUIRE_FALSE(decoder.ok());
  REQUIRE(decoder.U8() == 0);  // although three bytes are left
  REQUIRE(decoder.Raw(0).empty());
  REQUIRE_FALSE(decoder.Done());
}

TEST_CASE("a length beyond the input is refused") {
  for (size_t claimed : {size_t{4}, size_t{1} << 40, std::numeric_limits<size_t>::max()}) {
    const Bytes three = {1, 2, 3};
    Decoder decoder(three);
    REQUIRE(decoder.Raw(claimed).empty());
    REQUIRE_FALSE(decoder.ok());
  }
  Decoder text(
      AsBytes(std::string_view("\xff\xff"
                               "abc")));
  REQUIRE(text.Text16().empty());
  REQUIRE_FALSE(text.ok());
}

TEST_CASE("every proper prefix of an encoding is detected as truncated") {
  Encoder encoder;
  encoder.U8(1).Text16("hello").U24(3).BigU64(4);
  for (size_t size = 0; size < encoder.size(); ++size) {
    Decoder decoder(encoder.view().first(size));
    decoder.U8();
    decoder.Text16();
    decoder.U24();
    decoder.BigU64();
    REQUIRE_FALSE(decoder.ok());
  }
}

TEST_CASE("an encoder releases its buffer") {
  Encoder encoder;
  encoder.Raw("abc");
  REQUIRE(encoder.text() == "abc");
  REQUIRE(encoder.Take() == "abc");
}

}  // namespace
}  // namespace siltfs
