#include "fs/stream/stream_messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fs/recipe/recipe_entry.h"
#include "fs/records/snapshot_id_coding.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

enum class MessageType : uint8_t {
  kBegin = 1,
  kBlock,
  kRecords,
  kOffer,
  kEnd,
  kReady,
  kWants,
  kRefusal,
};

// StreamBegin
constexpr uint8_t kHasBase = 1;
constexpr uint8_t kTwoWay = 2;
// StreamBlock
constexpr uint8_t kNodes = 1;
constexpr uint8_t kCompressed = 2;

// A chunk's length has three bytes.
constexpr size_t kChunkBytes = ChunkName::kSize + 3 + 1;
static_assert(RecipeEntry::kMaxChunkLength < 1u << 24);
// A record has two lengths and a key of at least one byte. So the records of a message in memory
// have at most 13 times its size.
constexpr size_t kMinRecordBytes = 4 + 1 + 4;
static_assert(sizeof(StreamRecord) <= 13 * kMinRecordBytes);
// Stands for the length of a value that the snapshot does not have.
constexpr uint32_t kNoValue = 0xffffffff;
// Of a patch, before its lengths.
constexpr uint32_t kPatch = 0xfffffffe;

Status Malformed() { return {StatusCode::kCorruption, "a message of the stream is malformed"}; }

// --- Encoding

void EncodeText(std::string_view text, Encoder& out) {
  out.U32(static_cast<uint32_t>(text.size())).Raw(text);
}

void EncodeChunks(const std::vector<StreamChunk>& chunks, Encoder& out) {
  out.U32(static_cast<uint32_t>(chunks.size()));
  for (const StreamChunk& chunk : chunks)
    out.Raw(chunk.name.view()).U24(chunk.length).U8(chunk.salt);
}

Encoder Begin(MessageType type) {
  Encoder out;
  out.U8(static_cast<uint8_t>(type));
  return out;
}

Encoder Encode(const StreamBegin& begin) {
  Encoder out = Begin(MessageType::kBegin);
  out.U8(static_cast<uint8_t>((begin.base ? kHasBase : 0) | (begin.two_way ? kTwoWay : 0)));
  EncodeSnapshotId(out, begin.snapshot);
  if (begin.base) EncodeSnapshotId(out, *begin.base);
  out.U64(begin.inode_limit).I64(begin.logical_bytes).I64(begin.files);
  out.I64(begin.directories).I64(begin.chunk_references);
  EncodeText(begin.name, out);
  EncodeText(begin.position, out);
  return out;
}

Encoder Encode(const StreamBlock& block) {
  Encoder out = Begin(MessageType::kBlock);
  out.U8(static_cast<uint8_t>((block.nodes ? kNodes : 0) | (block.compressed ? kCompressed : 0)));
  EncodeChunks(block.chunks, out);
  out.Raw(ByteView(block.payload));
  return out;
}

Encoder Encode(const StreamRecords& records) {
  Encoder out = Begin(MessageType::kRecords);
  EncodeText(records.position, out);
  out.U32(static_cast<uint32_t>(records.records.size()));
  for (const StreamRecord& record : records.records) {
    EncodeText(record.key, out);
    if (!record.value) {
      out.U32(kNoValue);
      continue;
    }
    if (record.IsPatch()) {
      out.U32(kPatch);
      EncodeText(record.patched, out);
      out.U32(record.prefix).U32(record.suffix);
    }
    EncodeText(*record.value, out);
  }
  return out;
}

Encoder Encode(const StreamOffer& offer) {
  Encoder out = Begin(MessageType::kOffer);
  EncodeChunks(offer.chunks, out);
  return out;
}

Encoder Encode(const StreamEnd& end) {
  Encoder out = Begin(MessageType::kEnd);
  out.U64(end.records).U64(end.chunks);
  return out;
}

Encoder Encode(const StreamReady& ready) {
  Encoder out = Begin(MessageType::kReady);
  EncodeText(ready.position, out);
  return out;
}

Encoder Encode(const StreamWants& wants) {
  Encoder out = Begin(MessageType::kWants);
  out.U32(static_cast<uint32_t>(wants.wanted.size()));
  Bytes bits((wants.wanted.size() + 7) / 8);
  for (size_t i = 0; i < wants.wanted.size(); ++i)
    if (wants.wanted[i]) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
  out.Raw(ByteView(bits));
  return out;
}

Encoder Encode(const StreamRefusal& refusal) {
  Encoder out = Begin(MessageType::kRefusal);
  EncodeText(refusal.why, out);
  return out;
}

// --- Decoding. Each function reads all fields, and returns false for a value that no message has.
// Missing bytes are found by the caller.

std::string DecodeText(Decoder& in) { return std::string(AsText(in.Raw(in.U32()))); }

bool DecodeFlags(Decoder& in, uint8_t known, uint8_t& flags) {
  flags = in.U8();
  return (flags & ~known) == 0;
}

bool DecodeChunks(Decoder& in, std::vector<StreamChunk>& chunks) {
  const size_t count = in.U32();
  if (count > in.remaining() / kChunkBytes) return false;
  chunks.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    StreamChunk chunk;
    chunk.name = ChunkName::FromBytes(in.Raw(ChunkName::kSize));
    chunk.length = in.U24();
    chunk.salt = in.U8();
    if (chunk.length == 0) return false;
    chunks.push_back(chunk);
  }
  return true;
}

bool Decode(Decoder& in, StreamBegin& begin) {
  uint8_t flags = 0;
  if (!DecodeFlags(in, kHasBase | kTwoWay, flags)) return false;
  begin.two_way = (flags & kTwoWay) != 0;
  begin.snapshot = DecodeSnapshotId(in);
  if ((flags & kHasBase) != 0) begin.base = DecodeSnapshotId(in);
  begin.inode_limit = in.U64();
  begin.logical_bytes = in.I64();
  begin.files = in.I64();
  begin.directories = in.I64();
  begin.chunk_references = in.I64();
  begin.name = DecodeText(in);
  begin.position = DecodeText(in);
  return true;
}

bool Decode(Decoder& in, StreamBlock& block) {
  uint8_t flags = 0;
  if (!DecodeFlags(in, kNodes | kCompressed, flags)) return false;
  block.nodes = (flags & kNodes) != 0;
  block.compressed = (flags & kCompressed) != 0;
  if (!DecodeChunks(in, block.chunks) || block.chunks.empty()) return false;
  const ByteView payload = in.Raw(in.remaining());
  block.payload.assign(payload.begin(), payload.end());
  return true;
}

bool Decode(Decoder& in, StreamRecords& records) {
  records.position = DecodeText(in);
  const size_t count = in.U32();
  if (count > in.remaining() / kMinRecordBytes) return false;
  records.records.reserve(count);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    StreamRecord& record = records.records.emplace_back();
    record.key = DecodeText(in);
    if (record.key.empty()) return false;
    uint32_t length = in.U32();
    if (length == kPatch) {
      record.patched = DecodeText(in);
      record.prefix = in.U32();
      record.suffix = in.U32();
      length = in.U32();
      if (!record.IsPatch() || length >= kPatch) return false;
    }
    if (length != kNoValue) record.value = std::string(AsText(in.Raw(length)));
  }
  return true;
}

bool Decode(Decoder& in, StreamOffer& offer) { return DecodeChunks(in, offer.chunks); }

bool Decode(Decoder& in, StreamEnd& end) {
  end.records = in.U64();
  end.chunks = in.U64();
  return true;
}

bool Decode(Decoder& in, StreamReady& ready) {
  ready.position = DecodeText(in);
  return true;
}

bool Decode(Decoder& in, StreamWants& wants) {
  const size_t count = in.U32();
  const ByteView bits = in.Raw((count + 7) / 8);
  if (!in.ok()) return false;
  wants.wanted.resize(count);
  for (size_t i = 0; i < count; ++i) wants.wanted[i] = (bits[i / 8] >> (i % 8) & 1) != 0;
  return count % 8 == 0 || bits.back() >> (count % 8) == 0;
}

bool Decode(Decoder& in, StreamRefusal& refusal) {
  refusal.why = DecodeText(in);
  return true;
}

template <typename Message>
Result<StreamMessage> DecodeAs(Decoder& in) {
  Message message;
  if (!Decode(in, message) || !in.Done()) return Malformed();
  return StreamMessage(std::move(message));
}

}  // namespace

Bytes EncodeStreamMessage(const StreamMessage& message) {
  const Encoder encoded = std::visit([](const auto& each) { return Encode(each); }, message);
  const ByteView bytes = encoded.view();
  return {bytes.begin(), bytes.end()};
}

Result<StreamMessage> DecodeStreamMessage(ByteView bytes) {
  Decoder in(bytes);
  switch (static_cast<MessageType>(in.U8())) {
    case MessageType::kBegin:
      return DecodeAs<StreamBegin>(in);
    case MessageType::kBlock:
      return DecodeAs<StreamBlock>(in);
    case MessageType::kRecords:
      return DecodeAs<StreamRecords>(in);
    case MessageType::kOffer:
      return DecodeAs<StreamOffer>(in);
    case MessageType::kEnd:
      return DecodeAs<StreamEnd>(in);
    case MessageType::kReady:
      return DecodeAs<StreamReady>(in);
    case MessageType::kWants:
      return DecodeAs<StreamWants>(in);
    case MessageType::kRefusal:
      return DecodeAs<StreamRefusal>(in);
  }
  return Malformed();
}

}  // namespace siltfs
