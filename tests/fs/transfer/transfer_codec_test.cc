// The messages and records of transfers: round trips, and hostile bytes.
#include <random>

#include "fs/transfer/content_record.h"
#include "fs/transfer/entry_record.h"
#include "fs/transfer/lane_message.h"
#include "tests/support/catch.h"

namespace siltfs::transfer {
namespace {

EntryRecord Example() {
  EntryRecord record;
  record.kind = RecordKind::kEntry;
  record.number = 7;
  record.parent = 3;
  record.name = "name";
  record.mode = 0100644;
  record.uid = 1;
  record.gid = 2;
  record.device = 5;
  record.size = 10;
  record.atime = -1;
  record.mtime = 1'000'000'007;
  record.target = "target";
  record.source = {11, 12};
  record.xattrs = {{"user.a", "value"}, {"user.b", std::string("\0x", 2)}};
  record.extents = {{0, 2}, {5, 3}};
  return record;
}

std::string WithData(const EntryRecord& record, const std::string& data) {
  return EncodeRecord(record) + data;
}

TEST_CASE("A record is decoded as it was encoded, with its data") {
  const std::string two = WithData(Example(), "abcde") + WithData(Example(), "ABCDE");
  const auto records = DecodeRecords(AsBytes(two), 2);
  REQUIRE_OK(records);
  const DecodedRecord& record = (*records)[1];
  const EntryImage image = record.Image();
  CHECK(record.number == 7);
  CHECK(image.parent == 3);
  CHECK(image.name == "name");
  CHECK(image.mode == 0100644);
  CHECK(image.uid == 1);
  CHECK(image.gid == 2);
  CHECK(image.device == 5);
  CHECK(image.size == 10);
  CHECK(image.atime == -1);
  CHECK(image.mtime == 1'000'000'007);
  CHECK(image.target == "target");
  REQUIRE(image.source.has_value());
  CHECK(*image.source == SourceFacts{11, 12, 10, 1'000'000'007});
  REQUIRE(image.xattrs.size() == 2);
  CHECK(image.xattrs[1].value == std::string_view("\0x", 2));
  REQUIRE(image.extents.size() == 2);
  CHECK(image.extents[1].offset == 5);
  CHECK(AsText(image.extents[1].bytes) == "CDE");
}

TEST_CASE("Records that are cut short, too many or too few are refused") {
  const std::string whole = WithData(Example(), "abcde");
  for (size_t size = 0; size < whole.size(); ++size)
    REQUIRE_CODE(DecodeRecords(AsBytes(whole.substr(0, size)), 1), kInvalidArgument);
  REQUIRE_CODE(DecodeRecords(AsBytes(whole), 2), kInvalidArgument);
  REQUIRE_CODE(DecodeRecords(AsBytes(whole), 0), kInvalidArgument);
  REQUIRE_CODE(DecodeRecords(AsBytes(whole), SIZE_MAX), kInvalidArgument);
  REQUIRE_CODE(DecodeRecords(AsBytes(whole + "x"), 1), kInvalidArgument);
}

TEST_CASE("Whatever bytes a record has, what is decoded lies within them") {
  std::mt19937_64 random(1);
  const std::string whole = WithData(Example(), "abcde") + WithData(Example(), "abcde");
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (size_t flips = random() % 4 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto records = DecodeRecords(AsBytes(bytes), 2);
    if (!records.ok()) continue;
    const auto inside = [&bytes](const void* data, size_t size) {
      const char* at = static_cast<const char*>(data);
      return size == 0 || (at >= bytes.data() && at + size <= bytes.data() + bytes.size());
    };
    for (const DecodedRecord& record : *records) {
      const EntryImage image = record.Image();
      REQUIRE(inside(image.name.data(), image.name.size()));
      REQUIRE(inside(image.target.data(), image.target.size()));
      for (const XattrImage& xattr : image.xattrs)
        REQUIRE(inside(xattr.value.data(), xattr.value.size()));
      for (const ExtentImage& extent : image.extents)
        REQUIRE(inside(extent.bytes.data(), extent.bytes.size()));
    }
  }
}

TEST_CASE("Requests and answers are decoded as they were encoded, and others are refused") {
  const Request request{.type = RequestType::kOffer,
                        .flags = kNew,
                        .slot = 2,
                        .bytes = 100,
                        .count = 3,
                        .number = 4,
                        .second = 5};
  Bytes packet = EncodeRequest(request);
  CHECK(packet.size() == kRequestBytes);
  const auto decoded = DecodeRequest(packet);
  REQUIRE_OK(decoded);
  CHECK(decoded->type == RequestType::kOffer);
  CHECK(decoded->flags == kNew);
  CHECK(decoded->slot == 2);
  CHECK(decoded->bytes == 100);
  CHECK(decoded->count == 3);
  CHECK(decoded->number == 4);
  CHECK(decoded->second == 5);
  for (const auto& [place, value] : {std::pair<size_t, uint8_t>{0, 0}, {0, 200}, {2, 3}, {7, 1}}) {
    Bytes wrong = packet;
    wrong[place] = value;
    REQUIRE_CODE(DecodeRequest(wrong), kInvalidArgument);
  }
  packet.pop_back();
  REQUIRE_CODE(DecodeRequest(packet), kInvalidArgument);

  const Answer answer = FailureAnswer(Status(StatusCode::kNoSpace, std::string(5000, 'x')));
  const Bytes told = EncodeAnswer(answer);
  CHECK(told.size() <= kMaxAnswerBytes);
  const auto heard = DecodeAnswer(told);
  REQUIRE_OK(heard);
  REQUIRE_CODE(StatusOfAnswer(*heard), kNoSpace);
}

TEST_CASE("Outcomes always fit in a slot") {
  Encoder out;
  constexpr size_t kCount = 5000;
  for (size_t i = 0; i < kCount; ++i) {
    EncodeOutcome({.code = StatusCode::kAccessDenied, .inode = i, .cause = std::string(900, 'c')},
                  kSlotBytes, kCount - i - 1, out);
  }
  REQUIRE(out.size() <= kSlotBytes);
  const auto outcomes = DecodeOutcomes(out.view(), kCount);
  REQUIRE_OK(outcomes);
  CHECK((*outcomes)[0].cause.size() == 900);
  CHECK((*outcomes)[kCount - 1].inode == kCount - 1);
}

TEST_CASE("A number of entries that the bytes cannot have allocates nothing") {
  constexpr size_t kMany = UINT32_MAX;
  const Bytes bytes(1000);
  REQUIRE_CODE(DecodeOutcomes(bytes, kMany), kCorruption);
  REQUIRE_CODE(DecodeListedNames(bytes, kMany), kCorruption);
  REQUIRE_CODE(DecodeRecords(bytes, kMany), kInvalidArgument);
  REQUIRE_CODE(DecodePieces(bytes, kMany), kInvalidArgument);
  REQUIRE_CODE(DecodePlaces(bytes, kMany), kInvalidArgument);
}

TEST_CASE("Outcomes with an unknown effect or a cause that is too long are refused") {
  Encoder unknown;
  EncodeOutcome({.effect = static_cast<PutEffect>(77), .cause = {}}, kSlotBytes, 0, unknown);
  REQUIRE_CODE(DecodeOutcomes(unknown.view(), 1), kCorruption);
  Encoder chatty;
  chatty.U8(1).U8(0).U64(0).Text16(std::string(kMaxCauseBytes + 1, 'x'));
  REQUIRE_CODE(DecodeOutcomes(chatty.view(), 1), kCorruption);
  Bytes answer = EncodeAnswer({.cause = std::string(kMaxCauseBytes, 'x')});
  REQUIRE_OK(DecodeAnswer(answer));
  answer.push_back('x');
  REQUIRE_CODE(DecodeAnswer(answer), kCorruption);
}

TEST_CASE("A piece is refused if its chunk does not fit in a slot, or has another length") {
  for (const auto& [length, chunk_length, ok] :
       {std::tuple<uint64_t, uint32_t, bool>{kSlotBytes, kSlotBytes, true},
        {kSlotBytes + 1, kSlotBytes + 1, false},
        {0, 0, false},
        {8, 9, false}}) {
    ContentPiece piece{.kind = ContentPiece::Kind::kChunk, .length = length};
    piece.chunk.length = chunk_length;
    Encoder out;
    EncodePiece({.piece = piece}, out);
    CHECK(DecodePieces(out.view(), 1).ok() == ok);
  }
}

TEST_CASE("Pieces and places are decoded as they were encoded, and others are refused") {
  ContentPiece piece{.kind = ContentPiece::Kind::kChunk, .offset = 1, .length = 2};
  piece.chunk = {.name = {}, .length = 2, .location = {3, 4, 5}};
  piece.chunk.name.bytes[0] = 9;
  Encoder out;
  EncodePiece({.file = 6, .piece = piece}, out);
  EncodePiece({.file = 7, .code = StatusCode::kStale, .piece = {}}, out);
  const auto pieces = DecodePieces(out.view(), 2);
  REQUIRE_OK(pieces);
  CHECK((*pieces)[0].file == 6);
  CHECK((*pieces)[0].piece.chunk.name == piece.chunk.name);
  CHECK((*pieces)[0].piece.chunk.location == piece.chunk.location);
  CHECK((*pieces)[1].code == StatusCode::kStale);
  REQUIRE_CODE(DecodePieces(out.view(), 1), kInvalidArgument);
  Encoder place;
  EncodePlace(piece.chunk, place);
  REQUIRE_OK(DecodePlaces(place.view(), 1));
  REQUIRE_CODE(DecodePlaces(place.view(), 2), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs::transfer
