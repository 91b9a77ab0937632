// The messages and the frames of a snapshot stream are decoded from arbitrary bytes, as a receiver
// gets them from any sender. An accepted message is unchanged by encoding and decoding.
//
// The input: 1 byte that says whether a message or the frames of a stream follow, then their bytes.
// The frames have no magic number. A stream's reader gets few bytes at a time if the first byte
// says so.
#include <algorithm>
#include <string>
#include <utility>

#include "fs/stream/stream_frames.h"
#include "fs/stream/stream_messages.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/memory_stream.h"
#include "tests/support/stream_samples.h"

namespace siltfs::testing {
namespace {

constexpr uint8_t kFrames = 1;
constexpr uint8_t kShortReads = 2;
constexpr std::string_view kPrefix("SILTSNAP\1\0", 10);

void GoRoundMessage(ByteView bytes) {
  DecodesAsEncoded(
      bytes, DecodeStreamMessage,
      [&](const StreamMessage& message) {
        const Bytes encoded = EncodeStreamMessage(message);
        MustHold(std::ranges::equal(encoded, bytes), "a message has one encoding");
        return std::string(AsText(encoded));
      },
      [](const StreamMessage& first, const StreamMessage& second) { return first == second; });
}

std::vector<StreamMessage> ReadAll(const std::string& text, size_t most) {
  TextSource source(text, most);
  StreamReader reader(source);
  std::vector<StreamMessage> messages;
  while (true) {
    auto message = reader.Read();
    MustHold(reader.bytes() <= text.size(), "no byte is read twice");
    if (!message.ok()) {
      message.status().IgnoreError("any bytes may be refused");
      return messages;
    }
    messages.push_back(*std::move(message));
  }
}

std::string WriteAll(const std::vector<StreamMessage>& messages) {
  TextSink sink;
  StreamWriter writer(sink);
  for (const StreamMessage& message : messages)
    MustHold(writer.Write(message).ok(), "a message that was read can be written");
  return std::move(sink.text);
}

}  // namespace

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  SampleRandom random(1);
  std::vector<StreamMessage> all;
  for (size_t type = 0; type < kSampleTypes; ++type) {
    all.push_back(SampleMessage(random, type, 4));
    seeds.push_back(JoinInput({0}, EncodeStreamMessage(all.back())));
  }
  const StreamRecord patch{.key = "k", .value = "v", .patched = "p", .prefix = 3, .suffix = 4};
  all.push_back(StreamRecords{.records = {{"key", std::string(200, 'v')}, patch}, .position = "p"});
  const std::string text = WriteAll(all);
  for (const uint8_t choice : {kFrames, static_cast<uint8_t>(kFrames | kShortReads)})
    seeds.push_back(JoinInput({choice}, AsBytes(text).subspan(kPrefix.size())));
  return seeds;
}

void RunStream(FuzzInput input) {
  const uint64_t choice = input.Number(1);
  const ByteView bytes = input.Take(input.remaining());
  if ((choice & kFrames) == 0) {
    GoRoundMessage(bytes);
    return;
  }
  const size_t most = (choice & kShortReads) != 0 ? 3 : SIZE_MAX;
  const auto first = ReadAll(std::string(kPrefix) + std::string(AsText(bytes)), most);
  MustHold(ReadAll(WriteAll(first), most) == first, "messages are read as they were written");
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunStream(siltfs::testing::FuzzInput(data, size));
  return 0;
}
