// The format of a segment's object (store/bucket/segment_object.h).
#include "store/bucket/segment_object.h"

#include "store/base/checksum.h"
#include "store/base/hex_text.h"
#include "tests/store/bucket/bucket_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

std::unique_ptr<File> FileWith(SimEnv& env, const std::string& content) {
  REQUIRE_OK(ReplaceFile(env, "/segment", AsBytes(content)));
  return Must(env.OpenFile("/segment", {.mode = OpenMode::kRead}));
}

SegmentContent ContentOfSize(size_t size) {
  return {{0x12345678, 0x100000007}, static_cast<uint32_t>(size)};
}

}  // namespace

TEST_CASE("segment object: the size of the segment follows from the size of the object") {
  for (const uint32_t size :
       {0U, 1U, 100U, kObjectBlockBytes - 1, kObjectBlockBytes, kObjectBlockBytes + 1,
        10 * kObjectBlockBytes, 33'600'000U, kMostObjectSegmentBytes}) {
    CHECK(SegmentBytes(ObjectBytes(size)) == size);
  }
  CHECK_FALSE(SegmentBytes(0).has_value());
  CHECK_FALSE(SegmentBytes(kObjectTailBytes - 1).has_value());
  CHECK_FALSE(SegmentBytes(kObjectTailBytes + 3).has_value());  // a table of 3 bytes
  CHECK_FALSE(SegmentBytes(ObjectBytes(kObjectBlockBytes) + 4).has_value());
  CHECK_FALSE(SegmentBytes(ObjectBytes(kMostObjectSegmentBytes) + 1).has_value());
}

TEST_CASE("segment object: the image is the segment with its trailer, in any ranges") {
  SimEnv env;
  const std::string segment = RandomContent(1, 2 * kObjectBlockBytes + 500);
  const auto file = FileWith(env, segment);
  const SegmentContent content = ContentOfSize(segment.size());
  const auto checksums = Must(BlockChecksums::Compute(content, *file));
  const std::string trailer = checksums.EncodeTrailer();
  CHECK(trailer.size() == TrailerBytes(content.size));
  const ObjectImage image(content, *file, trailer);
  CHECK(Must(image.Size()) == segment.size() + trailer.size());
  CHECK(Must(ReadWhole(image)) == segment + trailer);
  CHECK(Must(ReadWhole(image, 777)) == segment + trailer);
  Bytes bytes(10);
  CHECK(Must(image.Read(segment.size() + trailer.size(), bytes)) == 0);
}

TEST_CASE("segment object: a trailer is decoded again, and knows its blocks") {
  SimEnv env;
  const std::string segment = RandomContent(2, kObjectBlockBytes + 3);
  const auto file = FileWith(env, segment);
  const SegmentContent content = ContentOfSize(segment.size());
  const auto checksums = Must(BlockChecksums::Compute(content, *file));
  const std::string trailer = checksums.EncodeTrailer();
  const auto decoded = Must(BlockChecksums::Decode(content, AsBytes(trailer)));
  CHECK(decoded == checksums);
  const std::string_view text = segment;
  CHECK(decoded.Matches(0, AsBytes(text.substr(0, kObjectBlockBytes))));
  CHECK(decoded.Matches(1, AsBytes(text.substr(kObjectBlockBytes))));
  CHECK_FALSE(decoded.Matches(1, AsBytes(text.substr(0, kObjectBlockBytes))));
  CHECK_FALSE(decoded.Matches(1, AsBytes(text.substr(kObjectBlockBytes, 2))));
  CHECK_FALSE(decoded.Matches(2, AsBytes(text.substr(0, 0))));
  std::string changed(text.substr(kObjectBlockBytes));
  changed[1] = static_cast<char>(changed[1] ^ 1);
  CHECK_FALSE(decoded.Matches(1, AsBytes(changed)));
}

TEST_CASE("segment object: equal blocks at other places and of other contents do not match") {
  SimEnv env;
  const std::string block = RandomContent(3, kObjectBlockBytes);
  const auto file = FileWith(env, block + block);
  SegmentContent content = ContentOfSize(2 * block.size());
  const auto checksums = Must(BlockChecksums::Compute(content, *file));
  const std::string trailer = checksums.EncodeTrailer();
  CHECK(AsText(AsBytes(trailer).first(8)) != AsText(AsBytes(trailer).subspan(8, 8)));
  ++content.id.generation;
  REQUIRE_CODE(BlockChecksums::Decode(content, AsBytes(trailer)).status(), kCorruption);
  const auto other = Must(BlockChecksums::Compute(content, *file));
  CHECK_FALSE(other == checksums);
  CHECK(other.EncodeTrailer().substr(0, 8) != trailer.substr(0, 8));
}

TEST_CASE("segment object: any changed byte of a trailer is detected") {
  SimEnv env;
  const std::string segment = RandomContent(4, kObjectBlockBytes + 3);
  const auto file = FileWith(env, segment);
  const SegmentContent content = ContentOfSize(segment.size());
  const std::string trailer = Must(BlockChecksums::Compute(content, *file)).EncodeTrailer();
  for (size_t i = 0; i < trailer.size(); ++i) {
    std::string damaged = trailer;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    INFO("byte " << i);
    REQUIRE_CODE(BlockChecksums::Decode(content, AsBytes(damaged)).status(), kCorruption);
    REQUIRE_CODE(BlockChecksums::Decode(content, AsBytes(trailer).first(i)).status(), kCorruption);
  }
}

TEST_CASE("segment object: a newer format is refused as such") {
  SimEnv env;
  const auto file = FileWith(env, "abc");
  const SegmentContent content = ContentOfSize(3);
  std::string trailer = Must(BlockChecksums::Compute(content, *file)).EncodeTrailer();
  const size_t tail = trailer.size() - kObjectTailBytes;
  trailer[tail + 8] = 2;
  const uint64_t sum = Checksum(AsBytes(trailer).subspan(tail, kObjectTailBytes - 8));
  for (size_t i = 0; i < 8; ++i)
    trailer[tail + kObjectTailBytes - 8 + i] = static_cast<char>(sum >> (8 * i));
  REQUIRE_CODE(BlockChecksums::Decode(content, AsBytes(trailer)).status(), kNeedsNewer);
}

TEST_CASE("segment object: the bytes of a trailer never change") {
  SimEnv env;
  const auto file = FileWith(env, "abc");
  const std::string trailer =
      Must(BlockChecksums::Compute(ContentOfSize(3), *file)).EncodeTrailer();
  CHECK(ToHex(trailer) ==
        "6ad10faa9e301e9b"  // of the block
        "53494c544f424a0a"
        "01000000"
        "00000400"
        "78563412"
        "03000000"
        "0700000001000000"
        "f03ab6b5ebae9955"
        "00000000000000000000000000000000"
        "61329420749e2e4d");
}
