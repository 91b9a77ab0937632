// Messages of a snapshot stream for tests, of each type and with contents from a seed. Plain
// functions.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "fs/stream/stream_messages.h"

namespace siltfs::testing {

using SampleRandom = std::mt19937_64;

inline std::string SampleText(SampleRandom& random, size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

inline SnapshotId SampleId(SampleRandom& random) {
  SnapshotId id;
  for (uint8_t& byte : id.store) byte = static_cast<uint8_t>(random());
  id.number = random();
  id.created = static_cast<int64_t>(random());
  return id;
}

inline std::vector<StreamChunk> SampleChunks(SampleRandom& random, size_t count) {
  std::vector<StreamChunk> chunks(count);
  for (StreamChunk& chunk : chunks) {
    for (uint8_t& byte : chunk.name.bytes) byte = static_cast<uint8_t>(random());
    chunk.length = 1 + static_cast<uint32_t>(random() % ((1u << 24) - 1));
    chunk.salt = static_cast<uint8_t>(random());
  }
  return chunks;
}

inline StreamRecords SampleRecords(SampleRandom& random, size_t count) {
  StreamRecords records;
  records.position = SampleText(random, 30);
  for (size_t i = 0; i < count; ++i) {
    StreamRecord& record = records.records.emplace_back();
    record.key = "k" + SampleText(random, 20);
    if (random() % 4 != 0) record.value = SampleText(random, 100);
  }
  return records;
}

inline constexpr size_t kSampleTypes = std::variant_size_v<StreamMessage>;

// `type` is the index in the variant. Lists have at most `most` elements.
inline StreamMessage SampleMessage(SampleRandom& random, size_t type, size_t most) {
  const auto number = [&] { return static_cast<int64_t>(random()); };
  const size_t count = random() % (most + 1);
  StreamMessage message;
  switch (type) {
    case 0: {
      StreamBegin begin;
      begin.snapshot = SampleId(random);
      if (random() % 2 == 0) begin.base = SampleId(random);
      begin.name = SampleText(random, 255);
      begin.inode_limit = random();
      begin.logical_bytes = number();
      begin.files = number();
      begin.directories = number();
      begin.chunk_references = number();
      begin.two_way = random() % 2 == 0;
      begin.position = SampleText(random, 30);
      return begin;
    }
    case 1: {
      StreamBlock block;
      block.nodes = random() % 2 == 0;
      block.compressed = random() % 2 == 0;
      block.chunks = SampleChunks(random, 1 + count);
      const std::string payload = SampleText(random, 500);
      block.payload.assign(payload.begin(), payload.end());
      return block;
    }
    case 2:
      return SampleRecords(random, count);
    case 3:
      return StreamOffer{.chunks = SampleChunks(random, count)};
    case 4:
      return StreamEnd{.records = random(), .chunks = random()};
    case 5:
      return StreamReady{.position = SampleText(random, 30)};
    case 6: {
      StreamWants wants;
      for (size_t i = 0; i < count; ++i) wants.wanted.push_back(random() % 2 == 0);
      return wants;
    }
    default:
      return StreamRefusal{.why = SampleText(random, 200)};
  }
}

}  // namespace siltfs::testing
