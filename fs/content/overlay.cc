#include "fs/content/overlay.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

using Kind = OverlayExtent::Kind;

// The part [from, to) of an extent. The offsets are relative to the start of the extent.
OverlayExtent Part(const OverlayExtent& extent, uint64_t from, uint64_t to) {
  OverlayExtent part;
  part.kind = extent.kind;
  part.length = to - from;
  if (extent.kind == Kind::kPlain) part.plain = extent.plain.substr(from, to - from);
  if (extent.kind != Kind::kChunks) return part;
  uint64_t at = 0;
  for (const ChunkSlice& slice : extent.slices) {
    uint64_t begin = std::max(from, at);
    uint64_t end = std::min(to, at + slice.length);
    if (begin < end) {
      ChunkSlice piece = slice;
      piece.skip += static_cast<uint32_t>(begin - at);
      piece.length = static_cast<uint32_t>(end - begin);
      part.slices.push_back(piece);
    }
    at += slice.length;
  }
  return part;
}

// The number of bytes of the extent that a fold has to cut.
uint64_t CutBytes(const OverlayExtent& extent) {
  if (extent.kind == Kind::kPlain) return extent.length;
  uint64_t bytes = 0;
  for (const ChunkSlice& slice : extent.slices) bytes += slice.IsWhole() ? 0 : slice.length;
  return bytes;
}

}  // namespace

uint64_t Overlay::end() const {
  if (extents_.empty()) return 0;
  auto last = std::prev(extents_.end());
  return last->first + last->second.length;
}

Overlay& Overlay::operator=(Overlay&& other) noexcept {
  if (this == &other) return *this;
  CountPlain(-static_cast<int64_t>(plain_bytes_));
  total_ = other.total_;
  extents_ = std::exchange(other.extents_, {});
  touched_ = std::exchange(other.touched_, {});
  slices_ = std::exchange(other.slices_, 0);
  plain_bytes_ = std::exchange(other.plain_bytes_, 0);  // already in the total
  chunk_bytes_ = std::exchange(other.chunk_bytes_, 0);
  return *this;
}

void Overlay::CountPlain(int64_t difference) {
  if (total_ != nullptr) *total_ += static_cast<uint64_t>(difference);
}

void Overlay::Count(const OverlayExtent& extent, int sign) {
  auto add = [sign](uint64_t& total, uint64_t amount) {
    sign > 0 ? total += amount : total -= amount;
  };
  if (extent.kind == Kind::kPlain) {
    add(plain_bytes_, extent.length);
    CountPlain(sign * static_cast<int64_t>(extent.length));
  }
  if (extent.kind == Kind::kChunks) {
    add(chunk_bytes_, extent.length);
    add(slices_, extent.slices.size());
  }
}

void Overlay::Load(uint64_t offset, OverlayExtent extent) {
  Count(extent, 1);
  extents_[offset] = std::move(extent);
}

void Overlay::Insert(uint64_t offset, OverlayExtent extent) {
  touched_.insert(offset);
  Load(offset, std::move(extent));
}

Overlay::Extents::const_iterator Overlay::AtOrBefore(uint64_t offset) const {
  auto after = extents_.upper_bound(offset);
  return after == extents_.begin() ? extents_.end() : std::prev(after);
}

void Overlay::Visit(uint64_t begin, uint64_t end,
                    const std::function<bool(const OverlayPiece&)>& visit) const {
  auto absent = [&visit](uint64_t from, uint64_t to) {
    return from >= to ||
           visit({.kind = OverlayPiece::Kind::kAbsent, .offset = from, .length = to - from});
  };
  uint64_t at = begin;
  auto extent = AtOrBefore(begin);
  if (extent == extents_.end()) extent = extents_.begin();
  for (; extent != extents_.end() && extent->first < end && at < end; ++extent) {
    const OverlayExtent& value = extent->second;
    uint64_t extent_end = extent->first + value.length;
    if (extent_end <= at) continue;
    if (!absent(at, std::max(at, extent->first))) return;
    at = std::max(at, extent->first);
    uint64_t stop = std::min(end, extent_end);
    if (value.kind == Kind::kPlain) {
      ByteView bytes = AsBytes(value.plain).subspan(at - extent->first, stop - at);
      if (!visit({.kind = OverlayPiece::Kind::kPlain,
                  .offset = at,
                  .length = stop - at,
                  .plain = bytes}))
        return;
    } else if (value.kind == Kind::kHole) {
      if (!visit({.kind = OverlayPiece::Kind::kHole, .offset = at, .length = stop - at})) return;
    } else {
      uint64_t slice_begin = extent->first;
      for (const ChunkSlice& whole : value.slices) {
        const uint64_t from = std::max(slice_begin, at);
        const uint64_t to = std::min(slice_begin + whole.length, stop);
        if (from < to) {
          ChunkSlice slice = whole;
          slice.skip += static_cast<uint32_t>(from - slice_begin);
          slice.length = static_cast<uint32_t>(to - from);
          if (!visit({.kind = OverlayPiece::Kind::kChunk,
                      .offset = from,
                      .length = slice.length,
                      .plain = {},
                      .slice = slice})) {
            return;
          }
        }
        slice_begin += whole.length;
        if (slice_begin >= stop) break;
      }
    }
    at = stop;
  }
  absent(at, end);
}

Overlay::Range Overlay::RawRunAt(uint64_t offset) const {
  auto at = AtOrBefore(offset);
  auto plain = [](const auto& entry) { return entry.second.kind == Kind::kPlain; };
  if (at == extents_.end() || !plain(*at) || at->first + at->second.length <= offset)
    return {offset, offset};
  auto first = at;
  while (first != extents_.begin()) {
    auto before = std::prev(first);
    if (!plain(*before) || before->first + before->second.length != first->first) break;
    first = before;
  }
  Range run{first->first, at->first + at->second.length};
  for (auto next = std::next(at); next != extents_.end() && plain(*next) && next->first == run.end;
       ++next) {
    run.end += next->second.length;
  }
  return run;
}

bool Overlay::BoundaryAt(uint64_t offset) const {
  if (offset == 0) return false;
  auto before = AtOrBefore(offset - 1);
  if (before == extents_.end()) return false;
  uint64_t end = before->first + before->second.length;
  if (before->second.kind == Kind::kHole) return end == offset;
  if (before->second.kind != Kind::kChunks || end < offset) return false;
  const std::vector<ChunkSlice>& slices = before->second.slices;
  for (auto slice = slices.rbegin(); slice != slices.rend() && end >= offset; ++slice) {
    if (end == offset) return slice->IsWhole();
    end -= slice->length;
  }
  return false;
}

std::vector<Overlay::Range> Overlay::CoveredRanges(Range window) const {
  std::vector<Range> ranges;
  auto at = AtOrBefore(window.begin);
  if (at == extents_.end()) at = extents_.begin();
  for (; at != extents_.end() && at->first < window.end; ++at) {
    const uint64_t begin = std::max(at->first, window.begin);
    const uint64_t end = std::min(at->first + at->second.length, window.end);
    if (begin >= end) continue;
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

Overlay::Range Overlay::StretchFrom(uint64_t from, size_t max_ranges,
                                    uint64_t max_cut_bytes) const {
  auto at = extents_.lower_bound(from);
  if (at == extents_.end()) return {from, from};
  Range stretch{at->first, at->first};
  size_t ranges = 0;
  uint64_t cut_bytes = 0;
  std::optional<Kind> kind;
  for (; at != extents_.end(); ++at) {
    const auto& [offset, extent] = *at;
    if (offset != stretch.end || extent.kind != kind) ++ranges;
    cut_bytes += CutBytes(extent);
    const bool full = ranges > max_ranges || cut_bytes > max_cut_bytes;
    if (full && stretch.size() > 0) break;
    kind = extent.kind;
    stretch.end = offset + extent.length;
  }
  return stretch;
}

void Overlay::Erase(uint64_t begin, uint64_t end) {
  auto at = extents_.upper_bound(begin);
  if (at != extents_.begin()) --at;
  while (at != extents_.end() && at->first < end) {
    uint64_t start = at->first;
    uint64_t stop = start + at->second.length;
    if (stop <= begin) {
      ++at;
      continue;
    }
    OverlayExtent whole = std::move(at->second);
    Count(whole, -1);
    touched_.insert(start);
    at = extents_.erase(at);
    if (start < begin) Insert(start, Part(whole, 0, begin - start));
    if (stop > end) Insert(end, Part(whole, end - start, stop - start));
  }
}

void Overlay::PutRaw(uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  Erase(offset, offset + bytes.size());
  if (offset > 0) {
    auto before = extents_.upper_bound(offset - 1);
    if (before != extents_.begin()) {
      --before;
      OverlayExtent& extent = before->second;
      bool adjacent = extent.kind == Kind::kPlain && before->first + extent.length == offset;
      if (adjacent && extent.length < OverlayExtent::kMaxPlainBytes) {
        size_t count =
            std::min<size_t>(bytes.size(), OverlayExtent::kMaxPlainBytes - extent.length);
        extent.plain += AsText(bytes.first(count));
        extent.length += count;
        plain_bytes_ += count;
        CountPlain(static_cast<int64_t>(count));
        touched_.insert(before->first);
        offset += count;
        bytes = bytes.subspan(count);
      }
    }
  }
  while (!bytes.empty()) {
    size_t count = std::min<size_t>(bytes.size(), OverlayExtent::kMaxPlainBytes);
    OverlayExtent extent;
    extent.kind = Kind::kPlain;
    extent.length = count;
    extent.plain = AsText(bytes.first(count));
    Insert(offset, std::move(extent));
    offset += count;
    bytes = bytes.subspan(count);
  }
}

void Overlay::PutHole(uint64_t offset, uint64_t length) {
  if (length == 0) return;
  Erase(offset, offset + length);
  if (offset > 0) {
    auto before = extents_.upper_bound(offset - 1);
    if (before != extents_.begin()) {
      --before;
      if (before->second.kind == Kind::kHole && before->first + before->second.length == offset) {
        before->second.length += length;
        touched_.insert(before->first);
        return;
      }
    }
  }
  OverlayExtent extent;
  extent.kind = Kind::kHole;
  extent.length = length;
  Insert(offset, std::move(extent));
}

void Overlay::PutSlices(uint64_t offset, const std::vector<ChunkSlice>& slices) {
  uint64_t total = 0;
  for (const ChunkSlice& slice : slices) total += slice.length;
  if (total == 0) return;
  Erase(offset, offset + total);
  // Add slices to the extent that ends at `offset` while it has room. The other slices get new
  // extents.
  auto last = extents_.end();
  if (offset > 0) {
    auto before = extents_.upper_bound(offset - 1);
    if (before != extents_.begin()) {
      --before;
      if (before->second.kind == Kind::kChunks && before->first + before->second.length == offset)
        last = before;
    }
  }
  for (const ChunkSlice& slice : slices) {
    if (last == extents_.end() || last->second.slices.size() >= OverlayExtent::kMaxSlices) {
      OverlayExtent extent;
      extent.kind = Kind::kChunks;
      last = extents_.emplace(offset, std::move(extent)).first;
    }
    last->second.slices.push_back(slice);
    last->second.length += slice.length;
    touched_.insert(last->first);
    offset += slice.length;
  }
  slices_ += slices.size();
  chunk_bytes_ += total;
}

void Overlay::Describe(InodeRecord& record) const {
  record.has_overlay = !extents_.empty();
  record.overlay_chunks = slices_;
  record.overlay_bytes = data_bytes();
}

void Overlay::TakeMutations(uint64_t inode, std::vector<Mutation>& mutations) {
  for (uint64_t offset : touched_) {
    auto extent = extents_.find(offset);
    if (extent == extents_.end()) {
      mutations.push_back({OverlayKey(inode, offset), std::nullopt});
    } else {
      mutations.push_back({OverlayKey(inode, offset), extent->second.Encode()});
    }
  }
  touched_.clear();
}

}  // namespace siltfs
