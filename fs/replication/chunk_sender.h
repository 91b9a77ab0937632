// Sends chunks in the order of the log: collects references, finds out where the chunks lie, and
// writes them as blocks of a snapshot stream.
//
// If nearly all of a stored block is to be sent, its compressed bytes are sent as they are.
// Otherwise the chunks are read and compressed again.
//
// Not thread-safe. Ownership: borrows all arguments, which must outlive it. Memory: the references
// of a window (kMostChunks), one decoded block, a block that is being collected, and SentChunks.
// Errors: those of the chunk store and of the stream; kAborted if the receiver refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/chunks/chunk_store.h"
#include "fs/recipe/recipe_entry.h"
#include "fs/replication/sent_chunks.h"
#include "fs/stream/stream_frames.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class ChunkSender {
 public:
  ChunkSender(ChunkStore& chunks, ChunkNamer& namer, StreamWriter& out)
      : chunks_(chunks), namer_(namer), out_(out) {}

  // From now on, asks the receiver which chunks it lacks.
  void Ask(StreamReader& answers) { answers_ = &answers; }

  struct Reference {
    ChunkName name;
    uint32_t length = 0;
    bool node = false;
  };
  // Adds a chunk of data to the window; sends the window when it is full.
  Status Add(const Reference& reference);
  // Adds a node to the window. False if the receiver has it, and so all nodes and chunks below it.
  Result<bool> AddNode(const RecipeChild& node);
  // Sends the window.
  Status Flush();

  // Marks a chunk that the receiver has.
  void Skip(const ChunkName& name);

  uint64_t chunks() const { return sent_; }
  uint64_t plain_bytes() const { return plain_bytes_; }

 private:
  struct Wanted {
    Reference reference;
    std::optional<ChunkReader::Place> place;
  };

  Status AskReceiver(std::vector<Wanted>& wanted);
  Status SendAll(const std::vector<Wanted>& wanted);
  std::optional<ChunkReader::Place> Find(const ChunkName& name);
  // Sends the block that has these chunks as it is stored, if nearly all of it is wanted.
  Result<bool> SendStored(std::span<const Wanted> wanted);
  Status SendDecoded(const Wanted& wanted);
  // Sends the chunks that are collected.
  Status SendCollected();
  Status Send(StreamBlock block);

  ChunkStore& chunks_;
  ChunkNamer& namer_;
  StreamWriter& out_;
  StreamReader* answers_ = nullptr;  // null in a one-way transfer
  SentChunks sent_before_;
  std::vector<Reference> window_;  // chunks of data, some of which may be known
  std::vector<Wanted> wanted_nodes_;
  uint64_t window_bytes_ = 0;
  ChunkReader::Place last_;
  ChunkStore::ReadCursor cursor_;
  const BlockCodec codec_;
  StreamBlock collected_;    // without its payload
  BlockBuilder collecting_;  // the chunks of collected_
  uint64_t sent_ = 0;
  uint64_t plain_bytes_ = 0;
};

}  // namespace siltfs
