// A file's overlay in memory: the extents that override its recipe, and which of their keys changed
// since they were last turned into mutations. The same extents stand in metadata
// (fs/meta/overlay_extent.h).
//
// Not thread-safe: it belongs to an inode and is guarded by the inode's mutex. Units: bytes. No
// I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/meta/inode_record.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/overlay_extent.h"

namespace siltfs {

// A part of a queried range.
struct OverlayPiece {
  enum class Kind : uint8_t { kAbsent, kPlain, kHole, kChunk };
  Kind kind = Kind::kAbsent;
  uint64_t offset = 0;
  uint64_t length = 0;
  ByteView plain = {};    // kPlain; valid until the overlay changes
  ChunkSlice slice = {};  // kChunk
};

// Plain bytes of all overlays that are in memory.
using PlainBytesTotal = std::atomic<uint64_t>;

class Overlay {
 public:
  // Counts its plain bytes into `total`, too, as long as it lives; null: nobody counts.
  explicit Overlay(PlainBytesTotal* total = nullptr) : total_(total) {}
  ~Overlay() { CountPlain(-static_cast<int64_t>(plain_bytes_)); }
  Overlay(Overlay&& other) noexcept { *this = std::move(other); }
  Overlay& operator=(Overlay&& other) noexcept;

  // An extent read from metadata.
  void Load(uint64_t offset, OverlayExtent extent);

  bool empty() const { return extents_.empty(); }
  uint64_t extents() const { return extents_.size(); }
  uint64_t slices() const { return slices_; }
  uint64_t plain_bytes() const { return plain_bytes_; }
  // Plain bytes and bytes of chunk slices.
  uint64_t data_bytes() const { return plain_bytes_ + chunk_bytes_; }
  uint64_t end() const;

  // Visits [begin, end) in order without gaps (kAbsent where there is nothing) until `visit`
  // returns false.
  void Visit(uint64_t begin, uint64_t end,
             const std::function<bool(const OverlayPiece&)>& visit) const;

  // The maximal range of adjacent plain extents around `offset`; empty (begin == end) if it lies in
  // none.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t size() const { return end - begin; }
    bool operator==(const Range&) const = default;
  };
  Range PlainRunAt(uint64_t offset) const;
  // Whether a whole chunk slice or a hole ends exactly at `offset`.
  bool BoundaryAt(uint64_t offset) const;
  // Maximal ranges within the window that are covered by extents of any kind, in order.
  std::vector<Range> CoveredRanges(Range window) const;
  // From the first extent that begins at or behind `from`, as far as there are no more than so many
  // ranges, separate from each other or not of one kind, and bytes that a fold cuts, plain ones and
  // parts of chunks (but one extent at least). Empty if there is none.
  Range StretchFrom(uint64_t from, size_t max_ranges, uint64_t max_cut_bytes) const;

  // Each replaces whatever lies in the range.
  void PutPlain(uint64_t offset, ByteView bytes);
  void PutHole(uint64_t offset, uint64_t length);
  void PutSlices(uint64_t offset, const std::vector<ChunkSlice>& slices);
  void Erase(uint64_t begin, uint64_t end);

  // Writes down in the file's record what there is.
  void Describe(InodeRecord& record) const;
  // Appends what brings metadata up to date, and forgets it.
  void TakeMutations(uint64_t inode, std::vector<Mutation>& mutations);

 private:
  using Extents = std::map<uint64_t, OverlayExtent>;

  void Insert(uint64_t offset, OverlayExtent extent);
  void Count(const OverlayExtent& extent, int sign);
  void CountPlain(int64_t difference);
  // The last extent that starts at or before `offset`, or end().
  Extents::const_iterator AtOrBefore(uint64_t offset) const;

  PlainBytesTotal* total_ = nullptr;
  Extents extents_;
  std::set<uint64_t> touched_;
  uint64_t slices_ = 0;
  uint64_t plain_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;
};

}  // namespace siltfs
