// Puts chunks that are not there yet: names each (SHA-1), tags it (keyed XXH3), and looks for it
// among those on their way, in the footer windows and in the index.
//
// A chunk is a duplicate only where one of these agrees in name *and* tag. What agrees in name
// alone is a SHA-1 collision, and is stored under a salted name. An index entry is a hint: what
// stands at its place decides, and nothing that is damaged, or soon to be removed, has duplicates.
// A footer window decides only for segments without secondary copies (secondary_copies.h), so every
// duplicate has an index entry that leads to a copy of it.
//
// Thread-safety: every call from any thread. Memory: for each thread that puts, a namer, and for
// each chunk of a call some 100 bytes. Errors: those of the index and the pipeline; kIoError where
// every salt collides. Durability: none. Source: locality windows after DDFS (FAST '08) section
// 4.2.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/dedup/block_pipeline.h"
#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/damage_list.h"
#include "fs/dedup/footer_windows.h"
#include "fs/dedup/gone_segments.h"
#include "fs/dedup/secondary_copies.h"
#include "fs/dedup/segment_set.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class Deduplicator {
 public:
  // What it looks through and puts into; all must outlive it.
  struct Store {
    ChunkIndex& index;
    BlockPipeline& pipeline;
    const GoneSegments& gone;
    FooterWindows& windows;
    ChunkReader& reader;
    const SegmentSet& condemned;  // about to be removed
    const DamageList& damage;
    SecondaryCopies& secondary;
  };
  struct Options {
    std::string store;  // path
    StoreUuid uuid;
    TagKey::Secret tag_secret{};
    uint64_t sha1_collisions = 0;  // met so far
  };
  Deduplicator(const Store& store, Options options);

  // names[i] becomes the name under which chunks[i] can be got, which is stored now if it was not.
  // Each chunk is as long as the pipeline takes it.
  Status Put(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names);

  uint64_t sha1_collisions() const { return collisions_; }

 private:
  // What is known of a name after looking everywhere but among the new chunks of other threads.
  enum class Known : uint8_t {
    kNew,        // there is no chunk of this name
    kDuplicate,  // there is this one
    kCollision,  // there is another one: SHA-1 collides
    kTaken,      // there is one that cannot be read; it may be another one
  };
  // A chunk on its way through Put, and what was known of it at the pipeline's moment `looked_at`.
  struct Candidate {
    ChunkRecord record;
    ByteView bytes;
    Known known = Known::kNew;
    uint64_t looked_at = 0;
  };

  // Namers are not thread-safe and cost an allocation and a look-up in OpenSSL each.
  Result<ChunkNamer> TakeNamer() SILTFS_EXCLUDES(mutex_);
  void ReturnNamer(ChunkNamer namer) SILTFS_EXCLUDES(mutex_);

  Status PutAll(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names,
                ChunkNamer& namer);
  // Stores the chunk under its name, or the first salted one that is free or already its own.
  Status PutNew(SegmentKind kind, Candidate& candidate, ChunkNamer& namer);
  // Adds the candidate under its record's name if it is new. True if it was.
  Result<bool> Add(SegmentKind kind, Candidate& candidate);
  // These bring candidates' `known` up to date.
  Status Look(Candidate& candidate);
  Status LookAll(std::span<Candidate> candidates);
  Known LookInMemory(const ChunkRecord& record);
  Result<Known> Confirm(const std::optional<Location>& location, const ChunkRecord& record);
  Result<Known> ConfirmAt(const Location& location, const ChunkRecord& record);
  Result<Known> ConfirmDamaged(const Location& location) const;

  const Store store_;
  const Options options_;
  const TagKey tag_key_;
  std::atomic<uint64_t> collisions_;
  Mutex mutex_;
  std::vector<ChunkNamer> free_namers_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
