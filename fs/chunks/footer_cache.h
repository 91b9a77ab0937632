// Cached parts of segment footers in RAM: the names and tags around recent index hits. The code
// calls a part a window. A backup stream repeats chunks in the order in which they were first
// written, so one part can find the next thousand duplicates without the index. Source: the
// locality-preserved caching of DDFS (FAST '08, section 4.2), with footers in place of containers.
//
// An entry has the first 64 bits of a name and the 64-bit tag. An all-zero entry was lost to
// damage, and is never found. Thread-safety: every call from any thread. Memory: the hash table and
// the parts take at most the constructor's `memory_bytes`, but at least one part is kept. Parts
// are allocated when they are inserted. No I/O, no errors.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/thread_annotations.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

class FooterCache {
 public:
  static constexpr uint32_t kWindowChunks = 1024;

  explicit FooterCache(size_t memory_bytes);

  struct Hit {
    SegmentId segment = kNoSegment;
    uint32_t ordinal = 0;
    ChunkTag tag = 0;
  };
  // Finds a chunk with this name prefix and this tag.
  std::optional<Hit> Find(const ChunkName& name, ChunkTag tag);
  // Finds any chunk with this name prefix.
  std::optional<Hit> Find(const ChunkName& name);

  // The entry at a place, if its part is cached.
  std::optional<FooterChunk> At(SegmentId segment, uint32_t ordinal);

  static uint32_t WindowStart(uint32_t ordinal) { return ordinal / kWindowChunks * kWindowChunks; }
  // Enters the part that begins at `window_start`, a value of WindowStart. Replaces a cached part
  // only if the new one is longer. `chunks` may have fewer than kWindowChunks entries.
  void Insert(SegmentId segment, uint32_t window_start, std::vector<FooterChunk> chunks);
  void EraseSegment(SegmentId segment);

 private:
  struct Window {
    SegmentId segment;
    uint32_t start;
    std::vector<FooterChunk> chunks;
  };
  // A cell of the hash table: a part of the name, and the place of the chunk in slots_.
  struct Cell {
    uint32_t fingerprint = 0;
    uint32_t place = kEmpty;  // slot * kWindowChunks + index
  };
  static constexpr uint32_t kEmpty = ~uint32_t{0};

  static uint64_t WindowKey(SegmentId segment, uint32_t start) {
    return static_cast<uint64_t>(segment) << 32 | start;
  }
  size_t HomeOf(uint64_t prefix) const { return (prefix * 0x9e3779b97f4a7c15U) >> shift_; }
  const FooterChunk& ChunkAt(uint32_t place) const SILTFS_REQUIRES(mutex_);
  void Enter(uint64_t prefix, uint32_t place) SILTFS_REQUIRES(mutex_);
  void Leave(uint64_t prefix, uint32_t place) SILTFS_REQUIRES(mutex_);
  void Evict(uint32_t slot) SILTFS_REQUIRES(mutex_);
  void Touch(uint32_t slot) SILTFS_REQUIRES(mutex_);
  std::optional<Hit> FindIf(const ChunkName& name, const ChunkTag* tag);

  size_t max_windows_ = 0;  // constant after construction
  Mutex mutex_;
  std::vector<std::optional<Window>> slots_ SILTFS_GUARDED_BY(mutex_);
  std::list<uint32_t> recent_ SILTFS_GUARDED_BY(mutex_);  // slots in use, most recently used first
  std::vector<std::list<uint32_t>::iterator> recent_of_ SILTFS_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ SILTFS_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, uint32_t> by_key_ SILTFS_GUARDED_BY(mutex_);
  std::vector<Cell> cells_
      SILTFS_GUARDED_BY(mutex_);  // open addressing, linear probing, at most 2/3 full
  unsigned shift_ = 0;            // 64 - log2(cells_.size()); constant after construction
};

}  // namespace siltfs
