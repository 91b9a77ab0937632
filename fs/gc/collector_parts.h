// The parts that a garbage collection works on, and its settings, shared by the classes of which a
// collector consists.
//
// Ownership: borrowed; all must outlive the collector. Thread-safety: as each part states.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fs/chunks/chunk_reader.h"
#include "fs/chunks/epoch_gate.h"
#include "fs/chunks/secondary_copies.h"
#include "fs/jobs/store_activity.h"
#include "fs/mark/mark.h"
#include "fs/meta/commit_port.h"
#include "fs/recipe/recipe_node.h"
#include "fs/recompression/recompressor.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/gone_segments.h"
#include "fs/segments/segment_bases.h"
#include "fs/segments/segment_set.h"
#include "fs/segments/space_account.h"
#include "store/base/thread_annotations.h"
#include "store/env/space_reserve.h"

namespace siltfs {

struct CollectorParts {
  Env& env;
  ChunkIndex& index;
  SegmentLog& log;
  SegmentCache& segments;
  FooterCache& windows;
  ChunkReader& reader;
  BlockPipeline& pipeline;
  Recompressor& recompressor;
  const BlockCodec& codec;
  NodeStore& nodes;
  EpochGate& uses;      // entered by users of chunk names, see ChunkStore::Use
  Mutex& mark_begin;    // see ChunkStore::mark_begin
  SegmentSet& victims;  // no new chunk is a duplicate of a chunk in them
  DamageList& damage;
  const GoneSegments& gone;
  SecondaryCopies& secondary;
  SegmentBases& bases;  // the segments with deltas
  const StoreActivity& activity;
  SpaceAccount& account;
  CommitPort& metadata;
  SpaceReserve* reserve = nullptr;  // copies may use it; null: there is none

  // The bases of all deltas, for marks (mark.h).
  MoreReferences Bases() const;
  // Whether the segment was removed, or is a victim.
  bool Gone(SegmentId id) const { return victims.Contains(id) || gone.Contains(id); }
};

struct CollectorOptions {
  std::string store;  // path
  Compression compression;
  uint32_t block_plain_bytes = kRecompressedBlockBytes;
  uint32_t segment_bytes = kMaxSegmentTargetSize;
  std::string spill_directory;
  std::function<void(const std::string&)> report;  // called with damage; may be empty
  // Disk space, in bytes, that copying leaves to metadata and the index, which must record the
  // copies. If this is more than half of the available space, copying leaves only about half
  // (VictimCollection).
  uint64_t room_for_others = 0;
  // At most this many bytes are read and written per second in the background (0: unlimited).
  uint64_t bytes_per_second = 32u << 20;
  std::chrono::nanoseconds poll{std::chrono::seconds(5)};
};

}  // namespace siltfs
