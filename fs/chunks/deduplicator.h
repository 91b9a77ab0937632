// Puts chunks that are not stored yet: names each (SHA-1), tags it (keyed XXH3), and looks for it
// among pending chunks, in the footer cache and in the index.
//
// A chunk is a duplicate only if a chunk found there has the same name *and* tag. If only the name
// is the same, the chunk is a SHA-1 collision, and is stored under a salted name. An index entry is
// a hint: the chunk at its place decides. A new chunk is never a duplicate of a chunk that is
// damaged or will soon be removed. The footer cache decides only for segments without secondary
// copies (secondary_copies.h), so every duplicate has an index entry that leads to a copy of it.
//
// Thread-safety: every call from any thread. Memory: a namer for each thread that puts, and some
// 100 bytes for each chunk of a call. Errors: those of the index and the pipeline; kIoError if
// every salt collides. Durability: none. Source: the use of the footer cache follows DDFS (FAST
// '08), section 4.2.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/chunks/chunk_reader.h"
#include "fs/chunks/footer_cache.h"
#include "fs/chunks/secondary_copies.h"
#include "fs/chunks/traffic_counters.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/gone_segments.h"
#include "fs/segments/segment_bases.h"
#include "fs/segments/segment_set.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class Deduplicator {
 public:
  // Dependencies; all must outlive it.
  struct Dependencies {
    ChunkIndex& index;
    BlockPipeline& pipeline;
    const GoneSegments& gone;
    FooterCache& windows;
    ChunkReader& reader;
    const SegmentSet& victims;  // about to be removed
    const DamageList& damage;
    SecondaryCopies& secondary;
    const SegmentBases& bases;
    TrafficCounters& traffic;
  };
  struct Options {
    std::string store;  // path
    StoreUuid uuid;
    TagKey::Secret tag_secret{};
    uint64_t sha1_collisions = 0;  // found so far
  };
  Deduplicator(const Dependencies& dependencies, Options options);

  // Stores those chunks that are not stored yet, and sets names[i] to the name of chunks[i]. Chunks
  // must have lengths that BlockPipeline::Add accepts.
  Status Put(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names);

  uint64_t sha1_collisions() const { return collisions_; }
  // Bytes of data chunks that were stored, and not found, since the store was opened.
  uint64_t added_bytes() const { return added_bytes_; }

 private:
  // The result of a look-up of a chunk's name. The look-up may miss chunks that other threads add
  // at the same time.
  enum class Known : uint8_t {
    kNew,        // there is no chunk of this name
    kDuplicate,  // this chunk is stored
    kCollision,  // another chunk has this name: SHA-1 collides
    kTaken,      // an unreadable chunk has this name; it may be this chunk or another one
  };
  // A chunk in Put, and what was known of it at `looked_at`, a point that BlockPipeline::Now
  // returned.
  struct Candidate {
    ChunkRecord record;
    ByteView bytes;
    Known known = Known::kNew;
    uint64_t looked_at = 0;
  };

  // Take a namer and return it for reuse. A namer is not thread-safe, and costs an allocation and a
  // look-up in OpenSSL.
  Result<ChunkNamer> TakeNamer() SILTFS_EXCLUDES(mutex_);
  void ReturnNamer(ChunkNamer namer) SILTFS_EXCLUDES(mutex_);

  Status PutAll(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names,
                ChunkNamer& namer);
  void CountPut(std::span<const ByteView> chunks, uint64_t in_memory);
  // Stores the chunk under its name. If another chunk has this name, tries the salted names in
  // order, and uses the first one that is free or that already belongs to this chunk.
  Status PutNew(SegmentKind kind, Candidate& candidate, ChunkNamer& namer);
  // Adds the candidate under its record's name, if there is no chunk of this name. True if it was
  // added.
  Result<bool> Add(SegmentKind kind, Candidate& candidate);
  // These update `known` of candidates.
  Status Look(Candidate& candidate);
  // Sets `in_memory` to the number of those that were found without the index.
  Status LookAll(std::span<Candidate> candidates, uint64_t& in_memory);
  Known LookInMemory(const ChunkRecord& record);
  Result<Known> Confirm(const std::optional<Location>& location, const ChunkRecord& record);
  Result<Known> ConfirmAt(const Location& location, const ChunkRecord& record);
  // Whether a chunk of the segment may be a delta whose base is damaged.
  bool MayHaveLostBase(SegmentId segment) const;
  Result<Known> ConfirmDamaged(const Location& location) const;

  const Dependencies deps_;
  const Options options_;
  const TagKey tag_key_;
  std::atomic<uint64_t> collisions_;
  std::atomic<uint64_t> added_bytes_{0};
  Mutex mutex_;
  std::vector<ChunkNamer> free_namers_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
