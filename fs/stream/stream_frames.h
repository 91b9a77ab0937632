// Frames of a snapshot stream: each holds one message (stream_messages.h), compressed and with a
// checksum. Encoding: docs/format.md, "Snapshot stream".
//
// A stream begins with a magic number and the version of the format. Each frame's checksum includes
// its place in the stream, so lost, repeated and exchanged frames are found.
//
// Thread-safety: one thread at a time. Ownership: borrows the streams. Errors: those of the stream;
// kCorruption for bytes that are no such frame; kInterrupted if the bytes end before the end of a
// frame, or where a frame must follow; kNeedsNewer for another version. Memory: some copies of one
// frame, which has at most kMaxStreamMessageBytes uncompressed.
#pragma once

#include <cstdint>
#include <optional>

#include "fs/stream/stream_messages.h"
#include "store/base/byte_stream.h"

namespace siltfs {

inline constexpr size_t kMaxStreamMessageBytes = 16u << 20;

class StreamWriter {
 public:
  explicit StreamWriter(ByteSink& out) : out_(out) {}
  // Writes the beginning of the stream before the first message. kInvalidArgument if the message is
  // too long. Payloads of StreamBlocks are not compressed again.
  Status Write(const StreamMessage& message);
  uint64_t bytes() const { return bytes_; }  // written so far

 private:
  ByteSink& out_;
  uint64_t frames_ = 0;
  uint64_t bytes_ = 0;
};

class StreamReader {
 public:
  explicit StreamReader(ByteSource& in) : in_(in) {}
  // The next message.
  Result<StreamMessage> Read();
  // kCorruption if anything follows.
  Status ExpectEnd();
  uint64_t bytes() const { return bytes_; }  // read so far

 private:
  ByteSource& in_;
  uint64_t frames_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace siltfs
