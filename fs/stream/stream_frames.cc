#include "fs/stream/stream_frames.h"

#include <zstd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTSNAP";
constexpr uint16_t kVersion = 1;
constexpr size_t kPrefixBytes = kMagic.size() + sizeof kVersion;

constexpr uint8_t kPlain = 0;
constexpr uint8_t kZstd = 1;
constexpr int kLevel = 3;

// A frame's header without the checksum, which follows it.
constexpr size_t kFieldBytes = 4 + 4 + 1;
constexpr size_t kHeaderBytes = kFieldBytes + 8;

// Memory for a payload grows in such steps at first, because a header can promise more bytes than
// the stream has.
constexpr size_t kFirstStep = 64u << 10;

Status Malformed(const char* what) { return {StatusCode::kCorruption, what}; }

Status Ended() { return {StatusCode::kInterrupted, "the stream ends too early"}; }

uint64_t FrameChecksum(uint64_t frame, ByteView fields, ByteView payload) {
  Encoder head;
  head.U64(frame).Raw(fields);
  return Checksum(head.view(), payload);
}

// Empty if the bytes are not smaller when compressed.
Bytes Compressed(ByteView plain) {
  Bytes out(plain.size() - 1);
  const size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), kLevel);
  // The only expected failure is that the result does not fit.
  out.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return out;
}

Result<Bytes> Decompressed(ByteView payload, size_t plain_bytes) {
  // Nothing may be hidden behind the one frame of zstd, and its size must be the announced one.
  if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size() ||
      ZSTD_getFrameContentSize(payload.data(), payload.size()) != plain_bytes) {
    return Malformed("a frame of the stream does not decompress");
  }
  Bytes plain(plain_bytes);
  const size_t size = ZSTD_decompress(plain.data(), plain.size(), payload.data(), payload.size());
  if (ZSTD_isError(size) != 0 || size != plain_bytes)
    return Malformed("a frame of the stream does not decompress");
  return plain;
}

// Reads until `out` is full or the stream ends, and returns the number of bytes read.
Result<size_t> ReadMost(ByteSource& in, MutableByteView out, uint64_t& total) {
  size_t have = 0;
  while (have < out.size()) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, in.Read(out.subspan(have)));
    if (got == 0) break;
    have += got;
    total += got;
  }
  return have;
}

Status ReadPrefix(ByteSource& in, uint64_t& total) {
  Bytes prefix(kPrefixBytes);
  SILTFS_ASSIGN_OR_RETURN(const size_t have, ReadMost(in, prefix, total));
  const std::string_view text = AsText(ByteView(prefix).first(have));
  // Other bytes are no stream, even if there are few of them.
  if (!text.starts_with(kMagic.substr(0, have))) return Malformed("is no stream of a snapshot");
  if (have < prefix.size()) return Ended();
  Decoder decoder(ByteView(prefix).subspan(kMagic.size()));
  if (decoder.U16() != kVersion)
    return {StatusCode::kNeedsNewer, "the stream is of another version of siltfs"};
  return Status::Ok();
}

Result<Bytes> ReadPayload(ByteSource& in, size_t size, uint64_t& total) {
  Bytes payload;
  while (payload.size() < size) {
    const size_t before = payload.size();
    payload.resize(std::min(size, std::max(kFirstStep, 2 * before)));
    const auto rest = MutableByteView(payload).subspan(before);
    SILTFS_ASSIGN_OR_RETURN(const size_t have, ReadMost(in, rest, total));
    if (have < rest.size()) return Ended();
  }
  return payload;
}

}  // namespace

Status StreamWriter::Write(const StreamMessage& message) {
  const Bytes plain = EncodeStreamMessage(message);
  if (plain.size() > kMaxStreamMessageBytes)
    return {StatusCode::kInvalidArgument, "a message of the stream is too long"};
  const Bytes compressed =
      std::holds_alternative<StreamBlock>(message) ? Bytes() : Compressed(plain);
  const ByteView payload = compressed.empty() ? ByteView(plain) : ByteView(compressed);

  Encoder fields;
  fields.U32(static_cast<uint32_t>(payload.size())).U32(static_cast<uint32_t>(plain.size()));
  fields.U8(compressed.empty() ? kPlain : kZstd);
  Encoder out;
  if (frames_ == 0) out.Raw(kMagic).U16(kVersion);
  out.Raw(fields.view()).U64(FrameChecksum(frames_, fields.view(), payload)).Raw(payload);
  SILTFS_RETURN_IF_ERROR(out_.Write(out.view()));
  ++frames_;
  bytes_ += out.size();
  return Status::Ok();
}

Result<StreamMessage> StreamReader::Read() {
  if (frames_ == 0) SILTFS_RETURN_IF_ERROR(ReadPrefix(in_, bytes_));
  Bytes header(kHeaderBytes);
  SILTFS_ASSIGN_OR_RETURN(const size_t have, ReadMost(in_, header, bytes_));
  if (have < header.size()) return Ended();
  Decoder decoder(header);
  const size_t stored_bytes = decoder.U32();
  const size_t plain_bytes = decoder.U32();
  const uint8_t compression = decoder.U8();
  const uint64_t checksum = decoder.U64();
  const bool sizes_match = compression == kPlain ? stored_bytes == plain_bytes
                                                 : stored_bytes > 0 && stored_bytes < plain_bytes;
  if (compression > kZstd || plain_bytes > kMaxStreamMessageBytes || !sizes_match)
    return Malformed("a frame of the stream is malformed");
  SILTFS_ASSIGN_OR_RETURN(Bytes payload, ReadPayload(in_, stored_bytes, bytes_));
  if (FrameChecksum(frames_, ByteView(header).first(kFieldBytes), payload) != checksum)
    return Malformed("a frame of the stream is damaged, lost or out of place");
  if (compression == kZstd) {
    SILTFS_ASSIGN_OR_RETURN(payload, Decompressed(payload, plain_bytes));
  }
  SILTFS_ASSIGN_OR_RETURN(StreamMessage message, DecodeStreamMessage(payload));
  ++frames_;
  return message;
}

Status StreamReader::ExpectEnd() {
  uint8_t next = 0;
  SILTFS_ASSIGN_OR_RETURN(const size_t got, in_.Read(MutableByteView(&next, 1)));
  bytes_ += got;
  return got == 0 ? Status::Ok() : Malformed("more bytes follow the end of the stream");
}

}  // namespace siltfs
