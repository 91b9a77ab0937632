// Writes the changed recipe nodes of repaired files into new segments, which hold nothing else. The
// segments are sealed before anything refers to the nodes. Nodes that are stored already are not
// written again.
//
// Not thread-safe. Errors: Env's; kNoSpace if the nodes need more segments than segment_limit
// allows. If Finish is not called, nothing refers to the written nodes. The next mount then removes
// them, or GC does.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/check/node_finder.h"
#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_writer.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class NodeWriter final : public NodeStore {
 public:
  struct Options {
    std::string store;                 // path
    SegmentStore* segments = nullptr;  // gets the sealed segments
    Superblock superblock;
    SegmentId first_segment = 1;  // ids from here on are unused
    SegmentId segment_limit = 1;  // end of the ids that may be used
    uint64_t first_sequence = 1;
    uint64_t last_commit = 0;
  };
  // `finder` finds the stored nodes; `env` and `finder` must outlive the writer.
  static Result<std::unique_ptr<NodeWriter>> Create(Env& env, Options options, NodeFinder& finder);

  Result<ChunkName> PutNode(ByteView node) override;
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;

  // Makes all written nodes durable; returns the records of their segments.
  Result<SegmentRecords> Finish();

 private:
  NodeWriter(Env& env, Options options, NodeFinder& finder, ChunkNamer namer);

  Status WriteBlock();
  Status Seal();

  Env& env_;
  const Options options_;
  NodeFinder& finder_;
  ChunkNamer namer_;
  const TagKey tag_key_;
  const BlockCodec codec_;
  BlockBuilder block_;
  std::unique_ptr<SegmentWriter> segment_;  // null: none is open
  SegmentId next_segment_;
  uint64_t next_sequence_;
  std::set<ChunkName> put_;
  SegmentRecords records_;
};

}  // namespace siltfs
