// The messages of a snapshot stream (docs/format.md, "Snapshot stream"), and their bytes.
//
// The sender writes a StreamBegin; then batches, each of which is any number of StreamBlocks and
// one StreamRecords; then a StreamEnd. All chunks that a record refers to are in an earlier block,
// unless the receiver has them. In a two-way transfer the receiver answers to StreamBegin with
// StreamReady, to each StreamOffer, which then comes before the blocks of a batch, with
// StreamWants, and to StreamEnd with StreamReady. It may answer StreamRefusal instead.
//
// Thread-safety: pure functions. Errors: kCorruption for bytes that are no such message; Decode
// accepts any bytes, and never allocates more than a small multiple of their size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fs/records/snapshot_id.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"

namespace siltfs {

struct StreamBegin {
  SnapshotId snapshot;
  std::optional<SnapshotId> base = {};
  std::string name;  // of the snapshot
  uint64_t inode_limit = 0;
  int64_t logical_bytes = 0;  // the counters of the snapshot
  int64_t files = 0;
  int64_t directories = 0;
  int64_t chunk_references = 0;
  bool two_way = false;
  std::string position;  // where the stream begins; empty: at the beginning (StreamRecords)

  bool operator==(const StreamBegin&) const = default;
};

struct StreamChunk {
  ChunkName name;
  uint32_t length = 0;  // uncompressed; 1 to 2^24 - 1
  uint8_t salt = 0;     // as in ChunkRecord (store/segment/block_head.h)

  bool operator==(const StreamChunk&) const = default;
};

// Chunks in one piece of compressed data, often as they are stored in one block of the segment log.
struct StreamBlock {
  bool nodes = false;               // recipe nodes, not data
  bool compressed = false;          // by zstd; else the payload is the uncompressed chunks
  std::vector<StreamChunk> chunks;  // at least one
  Bytes payload;

  bool operator==(const StreamBlock&) const = default;
};

struct StreamRecord {
  std::string key;                        // of the metadata (fs/records/schema.h); not empty
  std::optional<std::string> value = {};  // empty: the snapshot has no such key
  // Of the value that the base has for `patched`: so many bytes of its beginning come before
  // `value`, and so many of its end behind it.
  std::string patched = {};
  uint32_t prefix = 0;
  uint32_t suffix = 0;

  bool IsPatch() const { return prefix > 0 || suffix > 0; }
  bool operator==(const StreamRecord&) const = default;
};

struct StreamRecords {
  std::vector<StreamRecord> records;
  // Where the stream goes on behind these records. Its bytes have a meaning for the sender alone.
  std::string position;

  bool operator==(const StreamRecords&) const = default;
};

// The chunks of the next batch.
struct StreamOffer {
  std::vector<StreamChunk> chunks;
  bool operator==(const StreamOffer&) const = default;
};

struct StreamEnd {
  uint64_t records = 0;  // in the stream, from its position on
  uint64_t chunks = 0;
  bool operator==(const StreamEnd&) const = default;
};

// --- Answers

struct StreamReady {
  std::string position;  // where the stream shall begin; empty: at the beginning
  bool operator==(const StreamReady&) const = default;
};

struct StreamWants {
  std::vector<bool> wanted;  // by the chunks of the offer
  bool operator==(const StreamWants&) const = default;
};

struct StreamRefusal {
  std::string why;  // one sentence
  bool operator==(const StreamRefusal&) const = default;
};

using StreamMessage = std::variant<StreamBegin, StreamBlock, StreamRecords, StreamOffer, StreamEnd,
                                   StreamReady, StreamWants, StreamRefusal>;

// The first byte of the result says which message it is.
Bytes EncodeStreamMessage(const StreamMessage& message);
Result<StreamMessage> DecodeStreamMessage(ByteView bytes);

}  // namespace siltfs
