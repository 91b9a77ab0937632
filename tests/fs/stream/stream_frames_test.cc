#include "fs/stream/stream_frames.h"

#include <string>
#include <vector>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "tests/support/catch.h"
#include "tests/support/memory_stream.h"
#include "tests/support/stream_samples.h"

namespace siltfs {
namespace {

using namespace testing;  // NOLINT

constexpr size_t kPrefixBytes = 10;
constexpr size_t kHeaderBytes = 17;

// The beginning of the stream, and then its frames.
std::vector<std::string> Parts(const std::vector<StreamMessage>& messages) {
  TextSink sink;
  StreamWriter writer(sink);
  std::vector<std::string> parts;
  for (const StreamMessage& message : messages) {
    REQUIRE_OK(writer.Write(message));
    REQUIRE(writer.bytes() == sink.text.size());
    if (parts.empty()) parts.push_back(sink.text.substr(0, kPrefixBytes));
    size_t before = 0;
    for (const std::string& part : parts) before += part.size();
    parts.push_back(sink.text.substr(before));
  }
  return parts;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

std::string Written(const std::vector<StreamMessage>& messages) { return Joined(Parts(messages)); }

// Reads to the end of the stream. Each message must be the next one of `expected`. Returns the
// first failure.
Status ReadAs(ByteSource& source, const std::vector<StreamMessage>& expected) {
  StreamReader reader(source);
  for (const StreamMessage& message : expected) {
    auto read = reader.Read();
    if (!read.ok()) return std::move(read).status();
    REQUIRE(*read == message);
  }
  return reader.ExpectEnd();
}

Status ReadAs(const std::string& text, const std::vector<StreamMessage>& expected) {
  TextSource source(text);
  return ReadAs(source, expected);
}

std::vector<StreamMessage> SomeMessages() {
  SampleRandom random(3);
  std::vector<StreamMessage> messages;
  for (size_t type = 0; type < kSampleTypes; ++type)
    messages.push_back(SampleMessage(random, type, 3));
  // Compresses well.
  messages.push_back(StreamRecords{.records = {{"key", std::string(300, 'v')}}, .position = "p"});
  messages.push_back(StreamEnd{.records = 1, .chunks = 0});
  return messages;
}

// A frame with any fields and a matching checksum.
std::string Frame(uint64_t number, uint32_t stored, uint32_t plain, uint8_t compression,
                  std::string_view payload) {
  Encoder fields;
  fields.U32(stored).U32(plain).U8(compression);
  Encoder head;
  head.U64(number).Raw(fields.view());
  Encoder out;
  out.Raw(fields.view()).U64(Checksum(head.view(), AsBytes(payload))).Raw(payload);
  return out.Take();
}

Status ReadFirst(const std::string& frames) {
  TextSource source(Parts({StreamEnd{}})[0] + frames);
  StreamReader reader(source);
  return reader.Read().status();
}

TEST_CASE("Messages are read as they were written, however few bytes a read returns") {
  SampleRandom random(5);
  std::vector<StreamMessage> messages;
  for (size_t i = 0; i < 400; ++i)
    messages.push_back(SampleMessage(random, i % kSampleTypes, random() % 100));
  const std::string text = Written(messages);
  for (const size_t most : {size_t{1}, size_t{7}, size_t{1000}, SIZE_MAX}) {
    TextSource source(text, most);
    CAPTURE(most);
    REQUIRE_OK(ReadAs(source, messages));
  }
}

TEST_CASE("The bytes of a stream are those of the format's description") {
  const std::vector<std::string> parts = Parts({StreamEnd{.records = 1, .chunks = 2}});
  CHECK(parts[0] == std::string("SILTSNAP\1\0", 10));
  const Bytes message = EncodeStreamMessage(StreamEnd{.records = 1, .chunks = 2});
  // zstd cannot make a message of 17 bytes smaller.
  CHECK(parts[1] == Frame(0, 17, 17, 0, AsText(message)));
}

TEST_CASE("Lists are compressed, and blocks are not") {
  const std::string zeros(100000, '\0');
  const std::string records = Written({StreamRecords{.records = {{"k", zeros}}, .position = {}}});
  CHECK(records.size() < 1000);
  const StreamBlock block{.chunks = {{.name = {}, .length = 1}}, .payload = Bytes(100000)};
  CHECK(Written({block}).size() > 100000);
}

TEST_CASE("A stream that ends early is interrupted") {
  const std::vector<StreamMessage> messages = SomeMessages();
  const std::string text = Written(messages);
  for (size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    REQUIRE_CODE(ReadAs(text.substr(0, size), messages), kInterrupted);
  }
  REQUIRE_OK(ReadAs(text, messages));
  REQUIRE_CODE(ReadAs(text + "x", messages), kCorruption);
}

TEST_CASE("Each changed bit of a stream is found") {
  const std::vector<StreamMessage> messages = SomeMessages();
  const std::string text = Written(messages);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    CAPTURE(bit);
    const Status read = ReadAs(changed, messages);
    const bool version = bit / 8 == 8 || bit / 8 == 9;
    if (version) {
      REQUIRE_CODE(read, kNeedsNewer);
    } else if (!read.Is(StatusCode::kInterrupted)) {
      // A longer size needs bytes that do not follow.
      REQUIRE_CODE(read, kCorruption);
    }
  }
}

TEST_CASE("Lost, repeated and exchanged frames are found") {
  const std::vector<StreamMessage> messages = SomeMessages();
  const std::vector<std::string> parts = Parts(messages);
  for (size_t i = 1; i < parts.size(); ++i) {
    CAPTURE(i);
    auto changed = parts;
    changed.erase(changed.begin() + static_cast<ptrdiff_t>(i));
    const bool last = i + 1 == parts.size();
    REQUIRE(ReadAs(Joined(changed), messages)
                .Is(last ? StatusCode::kInterrupted : StatusCode::kCorruption));
    changed = parts;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(i), parts[i]);
    REQUIRE_CODE(ReadAs(Joined(changed), messages), kCorruption);
    for (size_t other = 1; other < i; ++other) {
      changed = parts;
      std::swap(changed[i], changed[other]);
      REQUIRE_CODE(ReadAs(Joined(changed), messages), kCorruption);
    }
  }
}

// A reader that goes on behind a damaged frame must not take a later one for it.
TEST_CASE("No message is read behind a damaged frame") {
  const std::vector<StreamMessage> messages = SomeMessages();
  std::vector<std::string> parts = Parts(messages);
  parts[2].back() = static_cast<char>(parts[2].back() ^ 1);
  TextSource source(Joined(parts));
  StreamReader reader(source);
  REQUIRE_OK(reader.Read());
  for (size_t i = 2; i < parts.size(); ++i) REQUIRE_CODE(reader.Read(), kCorruption);
}

TEST_CASE("Bytes that are no stream are refused") {
  for (const std::string& text : {std::string("hello"), std::string("SILTSNAQ"), std::string(1, 0),
                                  std::string(100, 'S'), "x" + Written({StreamEnd{}})}) {
    CAPTURE(text);
    REQUIRE_CODE(ReadAs(text, {}), kCorruption);
    TextSource source(text);
    REQUIRE_CODE(StreamReader(source).Read(), kCorruption);
  }
  for (const uint16_t version : {0, 2, 0x100, 0xffff}) {
    Encoder out;
    out.Raw("SILTSNAP").U16(version).Raw(Parts({StreamEnd{}})[1]);
    TextSource source(out.Take());
    REQUIRE_CODE(StreamReader(source).Read(), kNeedsNewer);
  }
}

TEST_CASE("Sizes that no frame has are refused before its bytes are read") {
  constexpr uint32_t kLimit = kMaxStreamMessageBytes;
  struct Sizes {
    uint32_t stored, plain;
    uint8_t compression;
  };
  for (const Sizes& sizes :
       {Sizes{kLimit + 1, kLimit + 1, 0}, Sizes{0xffffffff, 0xffffffff, 0}, Sizes{5, kLimit + 1, 1},
        Sizes{5, 0xffffffff, 1}, Sizes{5, 6, 0}, Sizes{6, 5, 0}, Sizes{0, 5, 1}, Sizes{5, 5, 1},
        Sizes{6, 5, 1}, Sizes{5, 6, 2}, Sizes{5, 6, 255}}) {
    CAPTURE(sizes.stored, sizes.plain, sizes.compression);
    REQUIRE_CODE(ReadFirst(Frame(0, sizes.stored, sizes.plain, sizes.compression, "")),
                 kCorruption);
  }
  // An empty frame holds no message.
  REQUIRE_CODE(ReadFirst(Frame(0, 0, 0, 0, "")), kCorruption);
}

TEST_CASE("Memory for a frame grows with the bytes that arrive") {
  constexpr uint32_t kLimit = kMaxStreamMessageBytes;
  TextSource source(Parts({StreamEnd{}})[0] + Frame(0, kLimit, kLimit, 0, std::string(100, 'x')));
  StreamReader reader(source);
  REQUIRE_CODE(reader.Read(), kInterrupted);
  CHECK(source.largest_read <= 64u << 10);
}

TEST_CASE("A payload that does not decompress to the announced size is refused") {
  const StreamRecords records{.records = {{"k", std::string(1000, 'v')}}, .position = {}};
  const std::string frame = Parts({records})[1];
  const std::string payload = frame.substr(kHeaderBytes);
  const auto stored = static_cast<uint32_t>(payload.size());
  const auto plain = static_cast<uint32_t>(EncodeStreamMessage(records).size());
  REQUIRE(frame == Frame(0, stored, plain, 1, payload));
  REQUIRE_OK(ReadFirst(frame));
  for (const uint32_t wrong : {plain - 1, plain + 1, uint32_t{kMaxStreamMessageBytes}})
    REQUIRE_CODE(ReadFirst(Frame(0, stored, wrong, 1, payload)), kCorruption);
  const std::string cut = payload.substr(0, stored - 1);
  REQUIRE_CODE(ReadFirst(Frame(0, stored - 1, plain, 1, cut)), kCorruption);
  REQUIRE_CODE(ReadFirst(Frame(0, stored + 1, plain, 1, payload + "x")), kCorruption);
  // An empty frame of zstd, and one that a decompressor skips.
  for (const std::string& hidden : {std::string("\x28\xb5\x2f\xfd\x20\0\1\0\0", 9),
                                    std::string("\x50\x2a\x4d\x18\0\0\0\0", 8)}) {
    const auto more = static_cast<uint32_t>(stored + hidden.size());
    REQUIRE_CODE(ReadFirst(Frame(0, more, plain, 1, payload + hidden)), kCorruption);
    REQUIRE_CODE(ReadFirst(Frame(0, more, plain, 1, hidden + payload)), kCorruption);
  }
  REQUIRE_CODE(ReadFirst(Frame(0, 5, plain, 1, "plain")), kCorruption);
}

TEST_CASE("A message with the greatest size is written, and a longer one is refused") {
  // 19 bytes of a record with a key of one byte, and of the list.
  const auto of_size = [](size_t size) {
    return StreamRecords{.records = {{"k", std::string(size - 18, 'v')}}, .position = {}};
  };
  const StreamRecords most = of_size(kMaxStreamMessageBytes);
  REQUIRE(EncodeStreamMessage(most).size() == kMaxStreamMessageBytes);
  REQUIRE_OK(ReadAs(Written({most}), {most}));
  TextSink sink;
  StreamWriter writer(sink);
  REQUIRE_CODE(writer.Write(of_size(kMaxStreamMessageBytes + 1)), kInvalidArgument);
  CHECK(sink.text.empty());
  REQUIRE_OK(writer.Write(StreamEnd{}));
  REQUIRE_OK(ReadAs(sink.text, {StreamEnd{}}));
}

TEST_CASE("Failures of the streams are returned") {
  class FullSink final : public ByteSink {
   public:
    Status Write(ByteView) override { return {StatusCode::kNoSpace, "is full"}; }
  };
  FullSink sink;
  REQUIRE_CODE(StreamWriter(sink).Write(StreamEnd{}), kNoSpace);
  const std::string text = Written({StreamEnd{}});
  for (size_t size = 0; size < text.size(); ++size) {
    TextSource source(text.substr(0, size));
    source.failure = Status(StatusCode::kIoError, "cannot be read");
    REQUIRE_CODE(StreamReader(source).Read(), kIoError);
  }
}

}  // namespace
}  // namespace siltfs
