// The chunks that are known to be damaged: where they lie, and their name prefixes and tags.
//
// A new chunk is never a duplicate of a listed chunk. So the next write of the same content stores
// the chunk again, under the same name: the chunk is *healed*. The index then leads to the new
// copy, and all references to the chunk can be read again. Only bytes with the tag of the listed
// chunk may take its name. The list does not forbid reads: if a listed chunk can be read, it is
// read.
//
// The list is kept in metadata (fs/records/damage_record.h). Each commit writes the changes of the
// list to it. An entry is removed with its segment, or when a scrub finds its chunks undamaged.
//
// Thread-safety: every call from any thread; look-ups in an empty list take no lock. Memory: some
// 80 bytes a chunk; at most kMostBlocks entries and kMostChunks chunks are kept. No I/O, no errors.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/damage_record.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class DamageList {
 public:
  static constexpr size_t kMostBlocks = 65'536;
  static constexpr size_t kMostChunks = size_t{1} << 20;

  // `known`: the list in metadata.
  explicit DamageList(std::span<const DamagedBlock> known);

  bool empty() const { return chunks_ == 0; }
  bool Contains(SegmentId segment, uint32_t ordinal) const SILTFS_EXCLUDES(mutex_);
  bool HasAnyOf(SegmentId segment) const SILTFS_EXCLUDES(mutex_);

  enum class Match : uint8_t {
    kNone,   // no damaged chunk has this name prefix
    kSame,   // a damaged chunk has this name prefix and tag
    kOther,  // damaged chunks have this name prefix, but none of them has this tag
  };
  Match Find(uint64_t name_prefix, ChunkTag tag) const SILTFS_EXCLUDES(mutex_);
  // The segments that hold a damaged chunk with this name prefix and tag.
  std::vector<SegmentId> SegmentsWith(uint64_t name_prefix, ChunkTag tag) const
      SILTFS_EXCLUDES(mutex_);
  // Returns what is known about the chunk at a place; empty if the chunk is not on the list.
  std::optional<DamagedChunk> ChunkAt(SegmentId segment, uint32_t ordinal) const
      SILTFS_EXCLUDES(mutex_);
  // Returns the chunks that were lost together with the chunk at a place; empty if this chunk is
  // not on the list.
  std::vector<DamagedChunk> ChunksAround(SegmentId segment, uint32_t ordinal) const
      SILTFS_EXCLUDES(mutex_);

  // Adds those chunks of the block that are not listed yet; listed chunks stay as they are. True if
  // any chunk was added.
  bool Add(const DamagedBlock& block) SILTFS_EXCLUDES(mutex_);
  // Replaces the entries of the segment below ordinal `end` by `blocks`, which are ascending. True
  // if some of these chunks were not listed before.
  bool Replace(SegmentId segment, std::span<const DamagedBlock> blocks, uint32_t end)
      SILTFS_EXCLUDES(mutex_);
  // Drops the entries of a segment that was removed.
  void Forget(SegmentId segment) SILTFS_EXCLUDES(mutex_);

  struct Totals {
    uint64_t blocks = 0;
    uint64_t chunks = 0;
    // Blocks that Add and Replace were given with a chunk that was not listed before.
    uint64_t found_blocks = 0;
  };
  Totals totals() const SILTFS_EXCLUDES(mutex_);
  // All entries, in ascending order of their places.
  std::vector<DamagedBlock> All() const SILTFS_EXCLUDES(mutex_);

  // Returns the changes that no CommitDone has confirmed yet. Metadata may have some of them
  // already; writing them again does no harm.
  std::vector<Mutation> Changes() const SILTFS_EXCLUDES(mutex_);
  // Appends the same changes to the mutations of a commit. When the commit is durable, the caller
  // confirms the changes that the last TellChanges appended by calling CommitDone.
  void TellChanges(std::vector<Mutation>& mutations) SILTFS_EXCLUDES(mutex_);
  void CommitDone() SILTFS_EXCLUDES(mutex_);

 private:
  using Place = std::pair<SegmentId, uint32_t>;  // of the first chunk
  using Blocks = std::map<Place, std::vector<DamagedChunk>>;

  Blocks::const_iterator At(SegmentId segment, uint32_t ordinal) const SILTFS_REQUIRES(mutex_);
  bool AddLocked(const DamagedBlock& block) SILTFS_REQUIRES(mutex_);
  void Enter(const DamagedBlock& block) SILTFS_REQUIRES(mutex_);
  void Erase(Blocks::iterator block) SILTFS_REQUIRES(mutex_);
  bool HasNewChunk(const DamagedBlock& block, const std::set<uint32_t>& known_ordinals) const;
  void Note(Mutation change) SILTFS_REQUIRES(mutex_) { changes_.push_back(std::move(change)); }

  mutable Mutex mutex_;
  Blocks blocks_ SILTFS_GUARDED_BY(mutex_);
  std::multiset<std::pair<uint64_t, ChunkTag>> tags_ SILTFS_GUARDED_BY(mutex_);  // prefix and tag
  std::vector<Mutation> changes_ SILTFS_GUARDED_BY(mutex_);  // in order, not yet durable
  size_t reported_ SILTFS_GUARDED_BY(mutex_) = 0;  // how many of changes_ TellChanges appended
  uint64_t found_blocks_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> chunks_{0};
};

// Writes the changes that metadata does not have yet; for callers without commits.
Status WriteDamage(DamageList& list, KvStore& metadata);

}  // namespace siltfs
