// Every message of a transfer is decoded from arbitrary bytes: those that the daemon gets from a
// client, and those that a client gets from the daemon. An accepted message is unchanged by
// encoding and decoding.
//
// The input: the kind of message, how many entries the message is said to have, then its bytes.
#include <array>
#include <string>
#include <utility>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/same_messages.h"

namespace siltfs::testing {
namespace {

using namespace transfer;  // NOLINT: all of this file is about its messages

template <typename Decode, typename Encode>
bool GoRound(ByteView bytes, const Decode& decode, const Encode& encode) {
  return DecodesAsEncoded(bytes, decode, encode, [](const auto& first, const auto& second) {
    return Same(first, second);
  });
}

std::string Text(const Bytes& bytes) { return std::string(AsText(bytes)); }

bool GoRoundRequest(ByteView bytes, uint32_t) {
  return GoRound(bytes, DecodeRequest, [](const Request& request) {
    const Bytes encoded = EncodeRequest(request);
    MustHold(encoded.size() == kRequestBytes, "a request has its size");
    return Text(encoded);
  });
}

bool GoRoundAnswer(ByteView bytes, uint32_t) {
  return GoRound(bytes, DecodeAnswer, [](const Answer& answer) {
    const Bytes encoded = EncodeAnswer(answer);
    MustHold(encoded.size() <= kMaxAnswerBytes, "a client receives every answer");
    StatusOfAnswer(answer).IgnoreError("any status may be told");
    return Text(encoded);
  });
}

// A list whose elements are encoded one behind the other.
template <typename Value, typename Decode, typename Encode>
bool GoRoundList(ByteView bytes, uint32_t count, const Decode& decode, const Encode& encode) {
  return GoRound(
      bytes, [&](ByteView in) { return decode(in, count); },
      [&](const std::vector<Value>& values) {
        MustHold(values.size() == count, "a list has as many entries as it should");
        Encoder out;
        for (const Value& value : values) encode(value, out);
        return out.Take();
      });
}

void EncodeDecoded(const DecodedRecord& decoded, Encoder& out) {
  const EntryImage& image = decoded.image;
  EntryRecord record;
  record.kind = decoded.kind;
  record.number = decoded.number;
  record.parent = image.parent;
  record.name = image.name;
  record.mode = image.mode;
  record.uid = image.uid;
  record.gid = image.gid;
  record.device = image.device;
  record.size = image.size;
  record.atime = image.atime;
  record.mtime = image.mtime;
  record.target = image.target;
  if (image.source) record.source = {image.source->inode, image.source->ctime};
  for (const XattrImage& xattr : decoded.xattrs)
    record.xattrs.push_back({std::string(xattr.name), std::string(xattr.value)});
  for (const ExtentImage& extent : decoded.extents)
    record.extents.push_back({extent.offset, static_cast<uint32_t>(extent.bytes.size())});
  out.Raw(EncodeRecord(record));
  for (const ExtentImage& extent : decoded.extents) out.Raw(extent.bytes);
}

bool GoRoundRecords(ByteView bytes, uint32_t count) {
  return GoRoundList<DecodedRecord>(bytes, count, DecodeRecords, EncodeDecoded);
}

bool GoRoundOutcomes(ByteView bytes, uint32_t count) {
  return GoRoundList<Outcome>(
      bytes, count, DecodeOutcomes,
      [](const Outcome& outcome, Encoder& out) { EncodeOutcome(outcome, SIZE_MAX, 0, out); });
}

bool GoRoundNames(ByteView bytes, uint32_t count) {
  return GoRoundList<ListedName>(bytes, count, DecodeListedNames,
                                 [](const ListedName& listed, Encoder& out) {
                                   const size_t before = out.size();
                                   EncodeListedName(listed.name, listed.mode, out);
                                   MustHold(out.size() - before == ListedBytes(listed.name),
                                            "a name takes as many bytes as announced");
                                 });
}

bool GoRoundPieces(ByteView bytes, uint32_t count) {
  return GoRoundList<FilePiece>(bytes, count, DecodePieces, EncodePiece);
}

bool GoRoundPlaces(ByteView bytes, uint32_t count) {
  return GoRoundList<ChunkPlace>(bytes, count, DecodePlaces, EncodePlace);
}

constexpr std::array<bool (*)(ByteView, uint32_t), 7> kMessages = {
    GoRoundRequest, GoRoundAnswer, GoRoundRecords, GoRoundOutcomes,
    GoRoundNames,   GoRoundPieces, GoRoundPlaces};

std::string SomeRecords() {
  EntryRecord file;
  file.parent = 1;
  file.name = "a file";
  file.mode = 0100644;
  file.size = 100;
  file.mtime = 1'600'000'000'000'000'000;
  file.source = {7, 8};
  file.xattrs = {{"user.a", "value"}, {"user.empty", ""}};
  file.extents = {{0, 4}, {90, 3}};
  EntryRecord link;
  link.kind = RecordKind::kLink;
  link.number = 12;
  link.name = "another name";
  EntryRecord symlink;
  symlink.mode = 0120777;
  symlink.name = "link";
  symlink.target = "to/somewhere";
  EntryRecord directory;
  directory.kind = RecordKind::kFinishDirectory;
  directory.number = 9;
  return EncodeRecord(file) + "datamor" + EncodeRecord(link) + EncodeRecord(symlink) +
         EncodeRecord(directory);
}

ChunkPlace SomePlace(uint8_t byte) {
  ChunkPlace place;
  place.name.bytes.fill(byte);
  place.length = 8192;
  place.location = {3, 4, 5};
  return place;
}

}  // namespace

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  const auto add = [&seeds](bool (*message)(ByteView, uint32_t), uint8_t count,
                            std::string_view bytes) {
    MustHold(message(AsBytes(bytes), count), "a seed is accepted");
    const auto kind = std::find(kMessages.begin(), kMessages.end(), message) - kMessages.begin();
    seeds.push_back(JoinInput({static_cast<uint8_t>(kind), count, 0, 0, 0}, AsBytes(bytes)));
  };
  add(GoRoundRequest, 0,
      Text(EncodeRequest({.type = RequestType::kOffer,
                          .flags = kNew,
                          .slot = 2,
                          .bytes = 1000,
                          .count = 3,
                          .number = 4,
                          .second = 5})));
  add(GoRoundAnswer, 0,
      Text(EncodeAnswer({.flags = kExisted, .bytes = 100, .count = 2, .number = 7, .second = 8})));
  add(GoRoundAnswer, 0, Text(EncodeAnswer(FailureAnswer({StatusCode::kNoSpace, "is full"}))));
  add(GoRoundRecords, 4, SomeRecords());
  add(GoRoundRecords, 0, {});
  Encoder outcomes;
  EncodeOutcome({.effect = PutEffect::kReplaced, .inode = 5, .cause = {}}, kSlotBytes, 1, outcomes);
  EncodeOutcome({.code = StatusCode::kAccessDenied, .cause = "permission denied"}, kSlotBytes, 0,
                outcomes);
  add(GoRoundOutcomes, 2, outcomes.text());
  Encoder names;
  EncodeListedName("one", 0100000, names);
  EncodeListedName("", 0040000, names);
  EncodeListedName("three", 0120000, names);
  add(GoRoundNames, 3, names.text());
  Encoder pieces;
  ContentPiece piece{.kind = ContentPiece::Kind::kChunk, .offset = 1, .length = 8192};
  piece.chunk = SomePlace(1);
  EncodePiece({.file = 6, .piece = piece}, pieces);
  EncodePiece({.file = 7, .code = StatusCode::kStale, .piece = {}}, pieces);
  EncodePiece({.file = 8, .piece = {.offset = 4096, .length = 1 << 20}}, pieces);
  EncodePiece({.file = 9, .piece = {.kind = ContentPiece::Kind::kOther, .length = 77}}, pieces);
  add(GoRoundPieces, 4, pieces.text());
  Encoder places;
  EncodePlace(SomePlace(2), places);
  EncodePlace(SomePlace(3), places);
  add(GoRoundPlaces, 2, places.text());
  return seeds;
}

void RunMessage(FuzzInput input) {
  const uint64_t which = input.Number(1) % kMessages.size();
  const auto count = static_cast<uint32_t>(input.Number(4));
  kMessages[which](input.Take(input.remaining()), count);
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunMessage(siltfs::testing::FuzzInput(data, size));
  return 0;
}
