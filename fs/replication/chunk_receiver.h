// Stores the chunks of a snapshot stream, and verifies that records refer to stored chunks alone.
//
// Not thread-safe. Ownership: borrows `chunks`, which must outlive it. While a batch is received,
// it holds a Use, so garbage collection waits. Memory: one decoded block, and 40 bytes for each
// chunk of a batch, at most kMostKnown. Errors: those of the chunk store; kCorruption if a chunk
// differs from its name, or a record refers to a chunk that the store does not have; kUnsupported
// for a chunk whose name another chunk of this store has (a collision of SHA-1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/mark/node_set.h"
#include "fs/records/inode_record.h"
#include "fs/stream/stream_messages.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class ChunkReceiver {
 public:
  explicit ChunkReceiver(ChunkStore& chunks) : chunks_(chunks) {}

  Status Put(const StreamBlock& block);
  // Which chunks of the offer the store lacks.
  StreamWants Choose(const StreamOffer& offer);
  // Verifies the references of a record that are not in the old one.
  Status VerifyInode(const std::optional<std::string>& before, const InodeRecord& after);
  Status VerifyExtent(std::string_view value);
  // Verifies the references of the batch that were only collected so far.
  Status Finish();
  // Call it when metadata has the batch's references, or when they are not needed.
  void EndBatch();

  // Whether a batch has begun, so that garbage collection waits for its end.
  bool InBatch() const { return use_.has_value(); }

  uint64_t chunks() const { return received_; }
  uint64_t plain_bytes() const { return plain_bytes_; }

 private:
  static constexpr size_t kMostKnown = 1u << 20;
  static constexpr size_t kMostNeeded = 4096;

  void BeginBatch();
  bool IsKnown(const ChunkName& name, uint32_t length) const {
    const auto found = known_.find(name);
    return found != known_.end() && found->second == length;
  }
  Status Need(const ChunkName& name, uint32_t length);
  Status RequireNeeded();

  ChunkStore& chunks_;
  const BlockCodec codec_;
  std::optional<ChunkStore::Use> use_;             // during a batch
  std::unordered_map<ChunkName, uint32_t> known_;  // lengths of stored chunks, held by use_
  std::vector<ChunkName> needed_;
  std::vector<uint32_t> needed_lengths_;
  // References (SubtreeSet::KeyOf) of the batch to nodes that are verified with everything below
  // them.
  std::optional<NodeSet> verified_{NodeSet::kWholeNames};
  uint64_t received_ = 0;
  uint64_t plain_bytes_ = 0;
};

}  // namespace siltfs
