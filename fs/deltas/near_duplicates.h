// Finds bases for the chunks of a segment that is recompressed: chunks that are stored whole and
// resemble them. Resembling chunks share a super-feature (chunker/resemblance.h), and SliceLSH
// (index/slice_lsh/slice_lsh.h) has the super-features of the chunks that were recompressed before.
//
// A chunk that was offered a base is not entered into SliceLSH, because it probably becomes a
// delta; all other chunks are. A chunk that was offered as a base is never offered a base itself:
// `kept_whole` remembers it, and begins with the base tables of all segments with deltas, which
// are read when the first segment is recompressed.
//
// A chunk is offered as a base only if the index leads to exactly that copy of it. Otherwise
// another copy of the chunk may be a delta, and garbage collection could keep only that copy.
//
// Thread-safety: one thread at a time calls Choose, and any thread stats. Ownership: borrows what
// `Dependencies` lists, which must outlive it. Memory: SliceLSH's buffers, the cache of
// `blocks` and one block more, BaseNames, and the super-features of one block. Errors: a candidate
// that cannot be read is skipped; damage is put on the damage list. If SliceLSH fails, or if
// BaseNames is full, a report says so once, and no more bases are offered. Damage and device errors
// of a base table end the choice of bases until the next mount, too: the chunks that must stay
// whole are then unknown. Choose fails only if the offer does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chunker/resemblance.h"
#include "fs/chunks/block_reader.h"
#include "fs/deltas/base_names.h"
#include "fs/segments/chunk_verifier.h"
#include "fs/segments/segment_bases.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"
#include "index/slice_lsh/slice_lsh.h"
#include "store/base/thread_annotations.h"
#include "store/segment/base_chooser.h"

namespace siltfs {

struct NearDuplicateStats {
  SliceLshStats lsh;
  uint64_t examined = 0;      // chunks for which a base was looked for, since the mount
  uint64_t candidates = 0;    // chunks that resemble them, according to SliceLSH
  uint64_t offered = 0;       // bases, after verification
  uint64_t memory_bytes = 0;  // of the names that are kept whole
};

class NearDuplicates final : public BaseChooser {
 public:
  struct Dependencies {
    ChunkIndex& index;
    SegmentCache& segments;
    BlockReader& blocks;
    const SegmentBases& bases;
    std::unique_ptr<SliceLsh> lsh;
    Resemblance resemblance;
    ChunkVerifier verifier;
  };
  struct Options {
    // If it returns true, nothing in the segment becomes a base: it is damaged, or garbage
    // collection is about to remove it. May be empty.
    std::function<bool(SegmentId)> is_excluded;
    // Whether the segment may hold secondary copies of chunks. Its chunks do not become deltas.
    std::function<bool(SegmentId)> has_secondary;
    std::function<void(const std::string&)> report;  // may be empty
  };
  NearDuplicates(Dependencies dependencies, Options options);
  ~NearDuplicates() override;

  Status Choose(const DecodedBlock& block, const Offer& offer) override SILTFS_EXCLUDES(mutex_);

  // Makes the super-features of recompressed chunks durable. Choose must not be called afterwards.
  Status Close() SILTFS_EXCLUDES(mutex_);
  // As they were after the last block. Does not wait for Choose, which may run on a thread that
  // gets processor time only when no other thread wants it.
  NearDuplicateStats stats() const SILTFS_EXCLUDES(published_mutex_);

 private:
  // A chunk of the block that is being examined.
  struct Chunk;
  // A whole chunk that resembles a chunk of the block.
  struct Base {
    size_t position = 0;  // of the resembling chunk in the block
    Location location;
    ChunkRecord record;
  };

  Status ChooseLocked(const DecodedBlock& block, const Offer& offer, Status& failure)
      SILTFS_REQUIRES(mutex_);
  Status LoadKeptWhole() SILTFS_REQUIRES(mutex_);
  std::vector<Chunk> Examine(const DecodedBlock& block) SILTFS_REQUIRES(mutex_);
  Result<std::vector<Base>> FindBases(const DecodedBlock& block, const std::vector<Chunk>& chunks)
      SILTFS_REQUIRES(mutex_);
  // The block with the chunk; null if it cannot be read, or if the chunk is not whole there.
  DecodedBlockPtr BlockOf(const Location& location) SILTFS_REQUIRES(mutex_);
  std::optional<Base> ReadCandidate(const SliceLshCandidate& candidate, SegmentId rewritten)
      SILTFS_REQUIRES(mutex_);
  void GiveUp(const Status& why) SILTFS_REQUIRES(mutex_);
  void Publish() SILTFS_REQUIRES(mutex_) SILTFS_EXCLUDES(published_mutex_);

  ChunkIndex& index_;
  SegmentCache& segments_;
  const SegmentBases& bases_;
  const Options options_;
  const Resemblance resemblance_;
  BlockReader& blocks_;

  Mutex mutex_;
  const std::unique_ptr<SliceLsh> lsh_;
  ChunkVerifier verifier_ SILTFS_GUARDED_BY(mutex_);
  BaseNames kept_whole_ SILTFS_GUARDED_BY(mutex_);
  bool loaded_ SILTFS_GUARDED_BY(mutex_) = false;  // kept_whole_ has all base tables
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;   // no more bases are offered
  NearDuplicateStats stats_ SILTFS_GUARDED_BY(mutex_);

  mutable Mutex published_mutex_;  // locked for a copy only
  NearDuplicateStats published_ SILTFS_GUARDED_BY(published_mutex_);
};

}  // namespace siltfs
