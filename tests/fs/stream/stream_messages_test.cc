#include "fs/stream/stream_messages.h"

#include <string>

#include "store/base/coding.h"
#include "store/base/hex_text.h"
#include "tests/support/catch.h"
#include "tests/support/stream_samples.h"

namespace siltfs {
namespace {

using namespace testing;  // NOLINT

std::string Hex(ByteView bytes) { return ToHex(AsText(bytes)); }

StreamMessage Decoded(ByteView bytes) {
  auto decoded = DecodeStreamMessage(bytes);
  REQUIRE_OK(decoded);
  return std::move(decoded).value();
}

Status Refused(const Encoder& bytes) { return DecodeStreamMessage(bytes.view()).status(); }

Encoder Begins(uint8_t type) {
  Encoder out;
  out.U8(type);
  return out;
}

TEST_CASE("Each message of a stream is decoded as it was encoded") {
  SampleRandom random(20261128);
  for (size_t i = 0; i < 4000; ++i) {
    const StreamMessage message =
        SampleMessage(random, i % kSampleTypes, i % 3 == 0 ? 0 : 1 + i % 20);
    const Bytes bytes = EncodeStreamMessage(message);
    CAPTURE(i);
    REQUIRE(bytes.front() == 1 + message.index());
    REQUIRE(Decoded(bytes) == message);
  }
}

TEST_CASE("The bytes of messages are those of the format's description") {
  StreamBegin begin;
  begin.snapshot.store.fill(0xaa);
  begin.snapshot.number = 3;
  begin.snapshot.created = 5;
  begin.name = "n";
  begin.inode_limit = 9;
  begin.logical_bytes = 10;
  begin.files = 11;
  begin.directories = 12;
  begin.chunk_references = 13;
  begin.two_way = true;
  begin.position = "at";
  const std::string id(32, 'a');
  const auto number = [](const char* low) { return low + std::string(14, '0'); };
  const std::string rest = number("09") + number("0a") + number("0b") + number("0c") +
                           number("0d") + "01000000" + "6e" + "02000000" + "6174";
  CHECK(Hex(EncodeStreamMessage(begin)) == "0102" + id + number("03") + number("05") + rest);
  begin.base = SnapshotId{.store = {}, .number = 1, .created = -1};
  CHECK(Hex(EncodeStreamMessage(begin)) == "0103" + id + number("03") + number("05") +
                                               std::string(32, '0') + number("01") +
                                               std::string(16, 'f') + rest);

  StreamChunk chunk{.name = {}, .length = 0x010203, .salt = 4};
  chunk.name.bytes.fill(0xcc);
  const std::string chunks = "01000000" + std::string(40, 'c') + "030201" + "04";
  const StreamBlock block{
      .nodes = true, .compressed = true, .chunks = {chunk}, .payload = {0xde, 0xad}};
  CHECK(Hex(EncodeStreamMessage(block)) == "0203" + chunks + "dead");
  const StreamRecord patch{.key = "e", .value = "f", .patched = "g", .prefix = 7, .suffix = 8};
  const StreamRecords records{.records = {{"ab", "c"}, {"d", {}}, patch}, .position = "p"};
  CHECK(Hex(EncodeStreamMessage(records)) ==
        "03"
        "0100000070"
        "03000000"
        "020000006162"
        "0100000063"
        "0100000064"
        "ffffffff"
        "0100000065"
        "feffffff"
        "0100000067"
        "07000000"
        "08000000"
        "0100000066");
  CHECK(Hex(EncodeStreamMessage(StreamOffer{.chunks = {chunk}})) == "04" + chunks);
  CHECK(Hex(EncodeStreamMessage(StreamEnd{.records = 1, .chunks = 2})) ==
        "05" + number("01") + number("02"));
  CHECK(Hex(EncodeStreamMessage(StreamReady{.position = "p"})) == "060100000070");
  const StreamWants wants{.wanted = {true, false, true, false, false, false, false, false, true}};
  CHECK(Hex(EncodeStreamMessage(wants)) ==
        "07"
        "09000000"
        "0501");
  CHECK(Hex(EncodeStreamMessage(StreamRefusal{.why = "no"})) == "08020000006e6f");
}

TEST_CASE("A message that is cut or extended is refused") {
  SampleRandom random(7);
  for (size_t type = 0; type < kSampleTypes; ++type) {
    const StreamMessage message = SampleMessage(random, type, 10);
    const bool block = std::holds_alternative<StreamBlock>(message);
    Bytes bytes = EncodeStreamMessage(message);
    CAPTURE(type);
    // The payload of a block is all that follows the chunks.
    const size_t fixed =
        block ? bytes.size() - std::get<StreamBlock>(message).payload.size() : bytes.size();
    for (size_t size = 0; size < fixed; ++size) {
      CAPTURE(size);
      REQUIRE_CODE(DecodeStreamMessage(ByteView(bytes).first(size)), kCorruption);
    }
    bytes.push_back(0);
    if (!block) REQUIRE_CODE(DecodeStreamMessage(bytes), kCorruption);
  }
}

TEST_CASE("Values that no message of a stream has are refused") {
  for (const int type : {0, 9, 255})
    CHECK(Refused(Begins(static_cast<uint8_t>(type)).Zeros(100)).Is(StatusCode::kCorruption));
  SampleRandom random(8);
  for (const size_t type : {0, 1}) {
    Bytes bytes = EncodeStreamMessage(SampleMessage(random, type, 3));
    for (int bit = 2; bit < 8; ++bit) {
      Bytes changed = bytes;
      changed[1] = static_cast<uint8_t>(changed[1] | 1u << bit);
      REQUIRE_CODE(DecodeStreamMessage(changed), kCorruption);
    }
  }
  // A block without chunks, a chunk without length, a record without key.
  CHECK(Refused(Begins(2).U8(0).U32(0)).Is(StatusCode::kCorruption));
  CHECK(Refused(Begins(4).U32(1).Zeros(24)).Is(StatusCode::kCorruption));
  CHECK(Refused(Begins(3).U32(0).U32(1).U32(0).U32(1).U8('v')).Is(StatusCode::kCorruption));
  // A bit that belongs to no chunk.
  CHECK(Refused(Begins(7).U32(1).U8(2)).Is(StatusCode::kCorruption));
  REQUIRE_OK(Refused(Begins(7).U32(1).U8(1)));
}

TEST_CASE("Counts and lengths beyond the bytes of the message are refused without allocation") {
  constexpr uint32_t kMost = 0xffffffff;
  for (const uint32_t count : {uint32_t{3}, uint32_t{1} << 31, kMost}) {
    CAPTURE(count);
    for (const auto& bytes :
         {Begins(2).U8(0).U32(count).Zeros(40), Begins(3).U32(0).U32(count).Zeros(40),
          Begins(3).U32(count), Begins(3).U32(0).U32(1).U32(1).U8('k').U32(count / 2),
          Begins(3).U32(0).U32(1).U32(count).U8('k').U32(kMost), Begins(4).U32(count).Zeros(40),
          Begins(6).U32(count), Begins(7).U32(count), Begins(8).U32(count).U8(1)}) {
      CAPTURE(Hex(bytes.view()));
      CHECK(Refused(bytes).Is(StatusCode::kCorruption));
    }
  }
}

TEST_CASE("Changed and random bytes give a message that is encoded as these bytes, or an error") {
  SampleRandom random(20261129);
  for (size_t i = 0; i < 40000; ++i) {
    Bytes bytes = EncodeStreamMessage(SampleMessage(random, random() % kSampleTypes, 4));
    if (i % 4 == 0) bytes.resize(random() % bytes.size());
    if (i % 4 == 1) bytes.assign(1 + random() % 100, 0);
    for (size_t n = i % 4 == 1 ? bytes.size() : random() % 4; n > 0 && !bytes.empty(); --n)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    CAPTURE(i);
    const auto decoded = DecodeStreamMessage(bytes);
    if (!decoded.ok()) {
      REQUIRE_CODE(decoded, kCorruption);
      continue;
    }
    REQUIRE(EncodeStreamMessage(*decoded) == bytes);
  }
}

}  // namespace
}  // namespace siltfs
