// A file's overlay in memory: the extents that override the file's recipe, and the keys of the
// extents that changed after the last TakeMutations. Metadata has the same extents, except for
// these changes (fs/records/overlay_extent.h).
//
// Not thread-safe: an overlay belongs to an inode and is guarded by the inode's mutex. Units:
// bytes. No I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"

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

// Raw bytes of all overlays in memory.
using PlainBytesTotal = std::atomic<uint64_t>;

class Overlay {
 public:
  // While the overlay exists, its raw bytes are included in `total`, which may be null.
  explicit Overlay(PlainBytesTotal* total = nullptr) : total_(total) {}
  ~Overlay() { CountPlain(-static_cast<int64_t>(plain_bytes_)); }
  Overlay(Overlay&& other) noexcept { *this = std::move(other); }
  Overlay& operator=(Overlay&& other) noexcept;

  // Adds an extent read from metadata.
  void Load(uint64_t offset, OverlayExtent extent);

  bool empty() const { return extents_.empty(); }
  uint64_t extents() const { return extents_.size(); }
  uint64_t slices() const { return slices_; }
  uint64_t plain_bytes() const { return plain_bytes_; }
  // Raw bytes and bytes of chunk slices.
  uint64_t data_bytes() const { return plain_bytes_ + chunk_bytes_; }
  uint64_t end() const;

  // Visits the pieces of [begin, end) in order, without gaps, until `visit` returns false. A part
  // without an extent is a piece of kind kAbsent.
  void Visit(uint64_t begin, uint64_t end,
             const std::function<bool(const OverlayPiece&)>& visit) const;

  // The maximal range of adjacent raw extents around `offset`; empty (begin == end) if `offset`
  // lies in no raw extent.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t size() const { return end - begin; }
    bool operator==(const Range&) const = default;
  };
  Range RawRunAt(uint64_t offset) const;
  // Whether a hole of the overlay, or a slice that is a whole chunk, ends exactly at `offset`.
  bool BoundaryAt(uint64_t offset) const;
  // Maximal ranges within the window that are covered by extents of any kind, in order.
  std::vector<Range> CoveredRanges(Range window) const;
  // Returns the stretch that begins with the first extent at or after `from`. It is empty if there
  // is no such extent. The stretch has as many whole extents as the two limits allow, but at least
  // one. `max_ranges` limits its ranges; a gap or a change of kind begins a new range.
  // `max_cut_bytes` limits the bytes that a fold of the stretch cuts: raw bytes, parts of chunks.
  Range StretchFrom(uint64_t from, size_t max_ranges, uint64_t max_cut_bytes) const;

  // These functions remove the old extents in the range; all except Erase put new ones there.
  void PutRaw(uint64_t offset, ByteView bytes);
  void PutHole(uint64_t offset, uint64_t length);
  void PutSlices(uint64_t offset, const std::vector<ChunkSlice>& slices);
  void Erase(uint64_t begin, uint64_t end);

  // Sets the overlay fields of the file's record.
  void Describe(InodeRecord& record) const;
  // Appends the mutations for all keys that changed after the last call. They bring metadata up to
  // date.
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
