// The bytes of a superblock, and the refusals of its decoder.
#include "store/superblock/superblock.h"

#include "store/base/checksum.h"
#include "tests/store/superblock/superblock_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

// A superblock in which one byte has a value that this code does not write, but with a valid
// checksum.
std::string WithByte(std::string bytes, size_t offset, uint8_t value) {
  bytes[offset] = static_cast<char>(value);
  uint64_t checksum = Checksum(AsBytes(bytes).first(4088));
  for (size_t i = 0; i < 8; ++i) bytes[4088 + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

}  // namespace

TEST_CASE("A superblock is decoded as it was encoded") {
  Superblock superblock = MakeSuperblock();
  std::string bytes = EncodeSuperblock(superblock);
  REQUIRE(bytes.size() == kSuperblockSize);
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == superblock);
  superblock.clean = false;
  superblock.compression = {BlockCodecId::kNone, 0};
  superblock.created_ns = -1;
  CHECK(Must(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock)))) == superblock);
}

TEST_CASE("Every byte of a superblock is covered by its checksum") {
  const std::string bytes = EncodeSuperblock(MakeSuperblock());
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    REQUIRE_CODE(DecodeSuperblock(AsBytes(flipped)), kCorruption);
  }
}

TEST_CASE("A superblock of any other size is refused") {
  const std::string bytes = EncodeSuperblock(MakeSuperblock());
  for (size_t size = 0; size < bytes.size(); ++size) {
    REQUIRE_CODE(DecodeSuperblock(AsBytes(bytes).first(size)), kCorruption);
  }
  REQUIRE_CODE(DecodeSuperblock(AsBytes(bytes + "x")), kCorruption);
}

TEST_CASE(
    "A superblock of another format version needs another siltfs, and the message names both "
    "versions") {
  for (uint8_t version : {0, 2, 99}) {
    auto decoded =
        DecodeSuperblock(AsBytes(WithByte(EncodeSuperblock(MakeSuperblock()), 8, version)));
    REQUIRE_CODE(decoded, kNeedsNewer);
    CHECK(decoded.status().cause() == "format version " + std::to_string(version) +
                                          " is not the one this siltfs understands (1)");
  }
}

TEST_CASE("Invalid values are neither valid nor decoded") {
  auto refused = [](auto change) {
    Superblock superblock = MakeSuperblock();
    REQUIRE_OK(ValidateSuperblock(superblock));
    change(superblock);
    REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
    REQUIRE_CODE(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock))), kCorruption);
  };
  refused([](Superblock& s) { s.uuid = {}; });
  refused([](Superblock& s) { s.rabin_polynomial = 0; });
  refused([](Superblock& s) { s.chunk_min = 63; });
  refused([](Superblock& s) { s.chunk_min = s.chunk_avg; });
  refused([](Superblock& s) { s.chunk_avg = s.chunk_max; });
  refused([](Superblock& s) { s.chunk_max = kMaxBlockPlainBytes + 1; });
  refused([](Superblock& s) { s.block_plain_bytes = (16U << 10) - 1; });
  refused([](Superblock& s) { s.block_plain_bytes = (2U << 20) + 1; });
  refused([](Superblock& s) { s.segment_bytes = (32U << 20) + 1; });
  refused([](Superblock& s) { s.segment_bytes = 4095; });
  refused([](Superblock& s) { s.compression.level = 23; });
  refused([](Superblock& s) { s.compression.codec = static_cast<BlockCodecId>(2); });
}

TEST_CASE("An unknown feature forbids writing, all access or nothing, depending on its field") {
  Superblock superblock = MakeSuperblock();
  REQUIRE_OK(CheckFeatures(superblock, StoreAccess::kReadWrite));  // compat forbids nothing

  superblock.ro_compat_features = uint64_t{1} << 40;
  REQUIRE_CODE(CheckFeatures(superblock, StoreAccess::kReadWrite), kNeedsNewer);
  REQUIRE_OK(CheckFeatures(superblock, StoreAccess::kReadOnly));

  superblock.incompat_features = uint64_t{1} << 63;
  REQUIRE_CODE(CheckFeatures(superblock, StoreAccess::kReadWrite), kNeedsNewer);
  REQUIRE_CODE(CheckFeatures(superblock, StoreAccess::kReadOnly), kNeedsNewer);
}

TEST_CASE("A store with deltas has a feature bit that other code must know") {
  Superblock superblock = MakeSuperblock();
  const std::string without = EncodeSuperblock(superblock);
  CHECK_FALSE(superblock.deltas());
  const uint64_t engines = GENERATE(uint64_t{0}, kIncompatEngines);
  superblock.incompat_features = kIncompatDeltas | engines;
  CHECK(superblock.deltas());
  REQUIRE_OK(CheckFeatures(superblock, StoreAccess::kReadWrite));
  const std::string bytes = EncodeSuperblock(superblock);
  const Superblock back = Must(DecodeSuperblock(AsBytes(bytes)));
  CHECK(back == superblock);
  CHECK(back.deltas());
  // The bit is the second one of the incompat features. Nothing else changes but the checksum.
  CHECK(bytes[32] == static_cast<char>(2 + engines));
  CHECK(bytes.substr(0, 32) == without.substr(0, 32));
  CHECK(bytes.substr(33, 4088 - 33) == without.substr(33, 4088 - 33));
}

TEST_CASE("A store of chunks is opened only by callers that expect one") {
  Superblock superblock = MakeSuperblock();
  CHECK_FALSE(superblock.chunks_only());
  REQUIRE_CODE(CheckFeatures(superblock, StoreAccess::kReadOnly, StoreContent::kChunksOnly),
               kUnsupported);
  superblock.incompat_features = kIncompatChunksOnly;
  const std::string bytes = EncodeSuperblock(superblock);
  CHECK(bytes[32] == 4);
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))).chunks_only());
  REQUIRE_OK(CheckFeatures(superblock, StoreAccess::kReadWrite, StoreContent::kChunksOnly));
  for (const StoreAccess access : {StoreAccess::kReadOnly, StoreAccess::kReadWrite})
    REQUIRE_CODE(CheckFeatures(superblock, access), kUnsupported);
}

TEST_CASE("A field changed by an incompatible feature is not reported as damage") {
  Superblock superblock = MakeSuperblock();
  superblock.incompat_features = uint64_t{1} << 60;
  superblock.compression.codec = static_cast<BlockCodecId>(2);
  REQUIRE_OK(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock))));
}

TEST_CASE("Names and parameters of engines are decoded as they were encoded") {
  Superblock superblock = MakeSuperblock();
  superblock.incompat_features = kIncompatEngines;
  CHECK(Must(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock)))) == superblock);
  superblock.metadata_engine = "sixteen_letters_";
  superblock.index_parameters = {{"a", 0}, {"twenty_four_letters_long", UINT64_MAX}};
  CHECK(Must(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock)))) == superblock);
  for (char name = 'b'; superblock.index_parameters.size() < kMostEngineParameters; ++name)
    superblock.index_parameters.push_back({std::string(1, name), 7});
  const std::string bytes = EncodeSuperblock(superblock);
  REQUIRE(bytes.size() == kSuperblockSize);
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == superblock);
  REQUIRE_OK(CheckFeatures(superblock, StoreAccess::kReadWrite));
}

TEST_CASE("The fields of engines have the documented offsets") {
  Superblock superblock = MakeSuperblock();
  superblock.incompat_features = kIncompatEngines;
  superblock.metadata_engine = "log";
  superblock.index_parameters = {{"ab", 0x0102}, {"c", 3}};
  const std::string bytes = EncodeSuperblock(superblock);
  CHECK(bytes.substr(320, 16) == "log" + std::string(13, '\0'));
  CHECK(bytes.substr(336, 8) == std::string(1, 2) + std::string(7, '\0'));
  CHECK(bytes.substr(344, 24) == "ab" + std::string(22, '\0'));
  CHECK(bytes.substr(368, 8) == std::string("\2\1\0\0\0\0\0\0", 8));
  CHECK(bytes.substr(376, 24) == "c" + std::string(23, '\0'));
  CHECK(bytes.substr(408, 4088 - 408) == std::string(4088 - 408, '\0'));
}

TEST_CASE(
    "Without their feature bit, the bytes of engines are ignored, and engines are not written") {
  const std::string bytes = EncodeSuperblock(MakeSuperblock());
  CHECK(Must(DecodeSuperblock(AsBytes(WithByte(WithByte(bytes, 320, 'x'), 336, 200)))) ==
        MakeSuperblock());
  Superblock superblock = MakeSuperblock();
  superblock.metadata_engine = "log";
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
  superblock = MakeSuperblock();
  superblock.index_parameters = {{"a", 1}};
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
}

TEST_CASE("With an unknown feature, the bytes of engines may mean something else") {
  Superblock superblock = MakeSuperblock();
  superblock.incompat_features = kIncompatEngines | uint64_t{1} << 60;
  const std::string bytes = WithByte(EncodeSuperblock(superblock), 336, 200);
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == superblock);
}

TEST_CASE("Malformed names of engines, and too many parameters, are neither valid nor decoded") {
  Superblock superblock = MakeSuperblock();
  superblock.incompat_features = kIncompatEngines;
  for (const std::string& name : {std::string("Log"), std::string("l g"), std::string("l\0g", 3)}) {
    superblock.metadata_engine = name;
    REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
    REQUIRE_CODE(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock))), kCorruption);
  }
  superblock.metadata_engine = "seventeen_letters";
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
  superblock.metadata_engine.clear();
  superblock.index_parameters = {{"", 1}};
  REQUIRE_CODE(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock))), kCorruption);
  superblock.index_parameters.assign(kMostEngineParameters + 1, {"a", 1});
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
  superblock.index_parameters = {{"a", 1}};
  for (const uint8_t count : {2, 17, 255}) {
    REQUIRE_CODE(DecodeSuperblock(AsBytes(WithByte(EncodeSuperblock(superblock), 336, count))),
                 kCorruption);
  }
}

StoreUuid OtherUuid() {
  StoreUuid uuid;
  for (size_t i = 0; i < StoreUuid::kSize; ++i) uuid.bytes[i] = static_cast<uint8_t>(i + 1);
  return uuid;
}

TEST_CASE("A label and a chosen UUID are decoded as they were encoded, at the documented offsets") {
  Superblock superblock = MakeSuperblock();
  const std::string without = EncodeSuperblock(superblock);
  superblock.SetIdentity("my files", OtherUuid());
  CHECK(superblock.ro_compat_features == kRoCompatIdentity);
  CHECK(superblock.shown_uuid() == OtherUuid());
  const std::string bytes = EncodeSuperblock(superblock);
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == superblock);
  CHECK(bytes[24] == 8);
  CHECK(bytes.substr(856, 16) == AsText(OtherUuid().view()));
  CHECK(bytes.substr(872, 64) == "my files" + std::string(56, '\0'));
  CHECK(bytes.substr(25, 856 - 25) == without.substr(25, 856 - 25));
  CHECK(bytes.substr(936, 4088 - 936) == std::string(4088 - 936, '\0'));
  superblock.SetIdentity(std::string(kMostLabelBytes, 'x'), superblock.uuid);
  CHECK(superblock.chosen_uuid == StoreUuid{});
  CHECK(Must(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock)))) == superblock);
}

TEST_CASE("A store without a label and a chosen UUID is encoded as before they existed") {
  Superblock superblock = MakeSuperblock();
  const std::string before = EncodeSuperblock(superblock);
  superblock.SetIdentity("a", OtherUuid());
  superblock.SetIdentity("", superblock.uuid);
  CHECK(superblock == MakeSuperblock());
  CHECK(EncodeSuperblock(superblock) == before);
}

TEST_CASE("Without their feature bit, a label and a UUID are ignored, and are not written") {
  const std::string bytes = EncodeSuperblock(MakeSuperblock());
  CHECK(Must(DecodeSuperblock(AsBytes(WithByte(WithByte(bytes, 856, 'x'), 872, 'y')))) ==
        MakeSuperblock());
  Superblock superblock = MakeSuperblock();
  superblock.label = "a";
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
  superblock = MakeSuperblock();
  superblock.chosen_uuid = OtherUuid();
  REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
}

TEST_CASE("Malformed labels are neither valid nor decoded") {
  for (const std::string& label :
       {std::string("a/b"), std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f")}) {
    Superblock superblock = MakeSuperblock();
    superblock.SetIdentity(label, superblock.uuid);
    REQUIRE_CODE(ValidateSuperblock(superblock), kInvalidArgument);
    REQUIRE_CODE(DecodeSuperblock(AsBytes(EncodeSuperblock(superblock))), kCorruption);
  }
  REQUIRE_CODE(ValidateLabel(std::string(65, 'x')), kInvalidArgument);
  REQUIRE_OK(ValidateLabel("\u00e4 b"));
}

TEST_CASE("A UUID is parsed from its text, with letters of either case") {
  const StoreUuid uuid = MakeSuperblock().uuid;
  CHECK(StoreUuid::FromText(uuid.ToText()) == uuid);
  CHECK(StoreUuid::FromText("A0A1A2A3-a4a5-A6a7-a8a9-aaabacadaeaf") == uuid);
  for (const char* text :
       {"", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaea",
        "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaff", "g0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf",
        "a0a1a2a3-a4a5-a6a7-a8a9 aaabacadaeaf"}) {
    CHECK_FALSE(StoreUuid::FromText(text));
  }
}
