// The chunks that are known to be damaged: where they lie, and what they were.
//
// What is on it is no duplicate of anything, so that the next write of the same content stores it
// again, under the same name: it is *healed*, and all who refer to it can read it, as the index
// leads to the new copy. Only bytes with its tag may take its name. Reading never asks the list
// whether it may: what is listed and can be read all the same is read.
//
// It is kept in metadata (fs/meta/damage_record.h), where changes come with the next commit. An
// entry goes with its segment, or when a scrub finds its chunks whole.
//
// Thread-safety: every call from any thread; of an empty list none takes a lock. Memory: some 80
// bytes a chunk; no more than kMostBlocks entries and kMostChunks chunks are taken. No I/O, no
// errors.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "fs/meta/damage_record.h"
#include "fs/meta/kv_store.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class DamageList {
 public:
  static constexpr size_t kMostBlocks = 65'536;
  static constexpr size_t kMostChunks = size_t{1} << 20;

  // As metadata has it.
  explicit DamageList(std::span<const DamagedBlock> known);

  bool empty() const { return chunks_ == 0; }
  bool Contains(SegmentId segment, uint32_t ordinal) const SILTFS_EXCLUDES(mutex_);
  bool HasAnyOf(SegmentId segment) const SILTFS_EXCLUDES(mutex_);

  enum class Match : uint8_t {
    kNone,   // no damaged chunk has a name that begins like this one
    kSame,   // it is this one
    kOther,  // there is another one: SHA-1 collides
  };
  Match Find(uint64_t name_prefix, ChunkTag tag) const SILTFS_EXCLUDES(mutex_);
  // The segments in which a chunk is damaged whose name begins so and which has this tag.
  std::vector<SegmentId> SegmentsWith(uint64_t name_prefix, ChunkTag tag) const
      SILTFS_EXCLUDES(mutex_);
  // What lay at a place, as far as is known; empty if it is not on the list.
  std::optional<DamagedChunk> ChunkAt(SegmentId segment, uint32_t ordinal) const
      SILTFS_EXCLUDES(mutex_);
  // What was lost together with it; empty if it is not on the list.
  std::vector<DamagedChunk> ChunksAround(SegmentId segment, uint32_t ordinal) const
      SILTFS_EXCLUDES(mutex_);

  // True if some of it is news, which becomes an entry; what is listed already stays as it is.
  bool Add(const DamagedBlock& block) SILTFS_EXCLUDES(mutex_);
  // All of the segment's chunks below `end` that are damaged, ascending. True if something was not
  // known before.
  bool Replace(SegmentId segment, std::span<const DamagedBlock> blocks, uint32_t end)
      SILTFS_EXCLUDES(mutex_);
  // The segment is gone.
  void Forget(SegmentId segment) SILTFS_EXCLUDES(mutex_);

  struct Totals {
    uint64_t blocks = 0;
    uint64_t chunks = 0;
  };
  Totals totals() const SILTFS_EXCLUDES(mutex_);
  // Ascending.
  std::vector<DamagedBlock> All() const SILTFS_EXCLUDES(mutex_);

  // What metadata does not have yet, as far as is known.
  std::vector<Mutation> Changes() const SILTFS_EXCLUDES(mutex_);
  // Appends it, for a commit; CommitDone says that the last one told of has become durable.
  void TellChanges(std::vector<Mutation>& mutations) SILTFS_EXCLUDES(mutex_);
  void CommitDone() SILTFS_EXCLUDES(mutex_);

 private:
  using Place = std::pair<SegmentId, uint32_t>;  // of the first chunk
  using Blocks = std::map<Place, std::vector<DamagedChunk>>;

  Blocks::const_iterator At(SegmentId segment, uint32_t ordinal) const SILTFS_REQUIRES(mutex_);
  bool AddLocked(const DamagedBlock& block) SILTFS_REQUIRES(mutex_);
  void Enter(const DamagedBlock& block) SILTFS_REQUIRES(mutex_);
  void Erase(Blocks::iterator block) SILTFS_REQUIRES(mutex_);
  void Note(Mutation change) SILTFS_REQUIRES(mutex_) { changes_.push_back(std::move(change)); }

  mutable Mutex mutex_;
  Blocks blocks_ SILTFS_GUARDED_BY(mutex_);
  std::multiset<std::pair<uint64_t, ChunkTag>> tags_ SILTFS_GUARDED_BY(mutex_);  // name prefixes'
  std::vector<Mutation> changes_ SILTFS_GUARDED_BY(mutex_);  // in order, not yet durable
  size_t told_ SILTFS_GUARDED_BY(mutex_) = 0;                // of these, by TellChanges
  std::atomic<size_t> chunks_{0};
};

// Writes what metadata does not have yet; for who has no commits.
Status WriteDamage(DamageList& list, KvStore& metadata);

}  // namespace siltfs
