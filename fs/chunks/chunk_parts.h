// The parts of an open chunk store, which ChunkStore (chunk_store.h) and the maintenance jobs
// (maintenance_jobs.h) share: the segment log, caches, the reader, the pipeline, and the sets of
// damaged, noted, victim and removed segments.
//
// Order: ChunkParts are opened first, then a ChunkStore and the maintenance jobs are made on them.
// They are destroyed in reverse order. For a clean end, the jobs are stopped before
// ChunkStore::Finish. Ownership: borrows `env`, `index`, and the pointers in the options. All of
// these must outlive the parts.
//
// Thread-safety: as each part states. The pointers do not change between Open and Finish. Errors of
// Open: those of the device. A damaged unsealed segment is no error; it is salvaged and sealed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/chunks/epoch_gate.h"
#include "fs/chunks/footer_cache.h"
#include "fs/chunks/replay_state.h"
#include "fs/chunks/secondary_copies.h"
#include "fs/chunks/traffic_counters.h"
#include "fs/guide/segment_guide.h"
#include "fs/jobs/store_activity.h"
#include "fs/meta/commit_port.h"
#include "fs/meta/id_allocator.h"
#include "fs/records/garbage_record.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/committed_segments.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/gone_segments.h"
#include "fs/segments/segment_bases.h"
#include "fs/segments/segment_cache.h"
#include "fs/segments/segment_log.h"
#include "fs/segments/segment_set.h"
#include "fs/segments/segment_tables.h"
#include "fs/segments/space_account.h"
#include "index/chunk_index.h"
#include "store/base/notice.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/env/space_reserve.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// Recipe nodes have fewer bytes than this (recipe_node.h: 512 entries of 24 bytes, or 256 of 48).
inline constexpr size_t kMaxNodeBytes = 16u << 10;

// The fields for threads and memory have the same meaning as in FileSystemOptions.
struct ChunkStoreOptions {
  std::string store;                       // path
  std::shared_ptr<SegmentStore> segments;  // finds open segments, too; null: the store's directory
  Superblock superblock;
  bool read_only = false;  // Put and PrepareCommit fail with kReadOnly
  // IdAllocator::BeginMount must have been called. Null only when read-only.
  IdAllocator* ids = nullptr;
  // For changes outside of commits. Null when read-only, and in stores without maintenance jobs.
  CommitPort* metadata = nullptr;
  SegmentGuide* guide = nullptr;              // null: searches read all segments
  SpaceReserve* reserve = nullptr;            // null: chunks are accepted until the disk is full
  uint64_t last_commit = 0;                   // number of the last commit
  uint64_t sha1_collisions = 0;               // found so far
  uint64_t found_damaged_blocks = 0;          // of `damage`, while the store was opened
  GarbageRecord garbage;                      // as of the last commit
  std::vector<DamagedBlock> damage;           // known damage
  std::vector<SegmentId> secondary;           // segments that may hold secondary copies
  SegmentRecords replacements;                // intents (segment_replacement.h); may be resolved
  size_t worker_threads = 1;                  // compress and append blocks
  size_t pipeline_bytes = 0;                  // uncompressed bytes in the pipeline, at most
  size_t idle_block_plain_bytes = 0;          // see BlockPipeline::Options
  size_t block_cache_bytes = 0;               // decoded blocks
  size_t readahead_threads = 0;               // 0: no readahead
  size_t footer_cache_bytes = 0;              // cached footer parts
  std::chrono::milliseconds quiet_after{0};   // an unused store is quiet after this time
  std::function<void(const Notice&)> report;  // called with damage found; may be empty
};

struct ChunkStoreTotals {
  uint64_t stored_bytes = 0;                  // of segment files
  uint64_t awaiting_recompression_bytes = 0;  // of these, in data segments not yet recompressed
  uint64_t dead_bytes = 0;                    // of stored_bytes, as far as is known
  uint64_t chunks = 0;                        // distinct data chunks in use, as far as is known
  uint64_t plain_bytes = 0;                   // uncompressed bytes of these chunks
  uint64_t added_bytes = 0;  // uncompressed, of data chunks stored since the store was opened
  uint64_t sha1_collisions = 0;
  uint64_t damaged_blocks = 0;  // known ones, including healed ones
  uint64_t damaged_chunks = 0;
  uint64_t found_damaged_blocks = 0;  // newly, since the store was opened
};

struct ChunkParts {
  // Continues the segments that a clean unmount left unsealed. `records`: the segments known to
  // metadata and recovery (segment_recovery.h). `unindexed`: entries that a read-only mount could
  // not put into the index.
  static Result<std::unique_ptr<ChunkParts>> Open(Env& env, ChunkIndex& index,
                                                  ChunkStoreOptions options,
                                                  const SegmentRecords& records,
                                                  std::vector<IndexEntry> unindexed);
  // Ends the threads of pipeline and log. Chunks that are not durable are lost.
  ~ChunkParts();

  // kReadOnly if the store was opened read-only, finished, or turned read-only by a failure.
  Status CheckWritable() const;

  Env& env;
  ChunkIndex& index;
  const ChunkStoreOptions options;
  const BlockCodec codec;
  StoreActivity activity;
  TrafficCounters traffic;
  SpaceAccount account;
  DamageList damage;
  SecondaryCopies secondary;
  FooterCache windows;
  SegmentBases bases;               // the segments with deltas
  std::unique_ptr<SegmentLog> log;  // null when read-only, as is the pipeline
  std::unique_ptr<SegmentCache> segments;
  std::unique_ptr<const GoneSegments> gone;
  std::unique_ptr<ChunkReader> reader;
  // For recompression in stores with deltas, else null. Its thread gets processor time only when no
  // other thread wants it, so no thread that serves a caller may wait for it to decode a block.
  std::unique_ptr<BlockReader> idle_blocks;
  std::unique_ptr<BaseReader> idle_bases;
  std::unique_ptr<BlockPipeline> pipeline;
  SegmentSet victims;  // no new chunk is a duplicate of a chunk in them
  EpochGate uses;      // entered by users of chunk names, see ChunkStore::Use
  Mutex mark_begin;    // see ChunkStore::mark_begin
  // Each gets each sealed segment when the segment's record was committed. Set the pointers before
  // the first commit, or never.
  std::vector<CommittedSegments*> sealed_to;
  // Whether the index has all entries. Chunks are stored only after that.
  ReplayState replay;
  // The records of segments that Open has sealed, because they were damaged.
  SegmentRecords salvaged;
  ChunkStoreTotals base;  // of the segments as they were when the store was opened

 private:
  ChunkParts(Env& env_in, ChunkIndex& index_in, ChunkStoreOptions options_in);

  void OpenLog();
  void OpenReader(std::vector<IndexEntry> unindexed);
  void OpenPipeline();
  // Continues or seals unsealed segments, and counts all segments in `base`.
  Status OpenSegments(const SegmentRecords& records);
  // Whether the unsealed segment must not be recompressed once it is sealed: in a store with
  // deltas, a moved chunk may be the base of a delta, and must stay whole.
  bool MustStayWhole(SegmentId id) const {
    return options.superblock.deltas() && secondary.Contains(id);
  }
  // Continues the unsealed segment. If the segment is damaged, salvages and seals it instead.
  // Returns the new record of the segment.
  Result<SegmentRecord> ResumeOrSeal(SegmentId id, const SegmentRecord& record);
  // Drops the entries of removed segments from the damage list. Such entries remain if an older
  // version of siltfs removed the segment, or if a mount ended before it could record that the
  // entries were dropped.
  void ForgetDamageOfGone(const SegmentSet& known);
  bool IsRight(const ChunkRecord& record, ByteView bytes);

  std::atomic<uint32_t> sealed_since_flush_{0};
};

}  // namespace siltfs
