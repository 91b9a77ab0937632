#include "fs/content/file_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fs/content/fold.h"
#include "fs/content/stream_cutter.h"
#include "fs/recipe/recipe_reader.h"

namespace siltfs {
namespace {

// When writes of a file overtake each other, some raw bytes lie after a gap. If chunks were cut
// from these bytes, the fold would probably have to cut the bytes again. So they stay raw until a
// write fills the gap, or until there are this many of them.
constexpr uint64_t kMaxWaitingBytes = 4u << 20;
// A shorter stream is not worth cutting: its end would be cut again with every write. Also, naming
// many chunks at a time is faster.
constexpr uint64_t kLeastToCut = 128U << 10;
// An overlay beyond one of these limits is folded even while the file is being written.
constexpr uint64_t kMaxOverlaySlices = 8192;
constexpr uint64_t kMaxOverlayRawBytes = 8u << 20;
constexpr uint64_t kMaxOverlayExtents = 16384;
// Limits for one step of a fold, because other users of the file wait during a step. For each range
// the fold reads about two chunks and writes about three. It cuts and names all raw bytes.
constexpr size_t kFoldRanges = 64;
constexpr uint64_t kFoldRawBytes = 1u << 20;

}  // namespace

FileContent::FileContent(ChunkStore& chunks, std::shared_ptr<const ChunkerTables> tables)
    : chunks_(chunks), tables_(std::move(tables)) {}

uint64_t FileContent::AllocatedBytes(const InodeRecord& record) {
  const RecipeTotals totals = record.recipe.totals();
  const uint64_t in_recipe =
      std::min(totals.covered_bytes - totals.hole_bytes, record.recipe_limit);
  return std::min(record.size, in_recipe + record.overlay_bytes);
}

uint64_t FileContent::ChunkReferences(const InodeRecord& record) {
  return record.recipe.chunk_count() + record.overlay_chunks;
}

bool FileContent::IsFolded(const InodeRecord& record) {
  return !record.has_overlay && record.recipe_limit == record.size &&
         record.recipe.size() == record.size;
}

bool FileContent::NeedsFold(const Overlay& overlay) {
  return overlay.slices() > kMaxOverlaySlices || overlay.plain_bytes() > kMaxOverlayRawBytes ||
         overlay.extents() > kMaxOverlayExtents;
}

Result<size_t> FileContent::Read(const InodeRecord& record, const Overlay& overlay, uint64_t offset,
                                 MutableByteView out) const {
  if (offset >= record.size) return size_t{0};
  out = out.first(std::min<uint64_t>(out.size(), record.size - offset));
  Status status;
  ChunkStore::ReadCursor read_cursor;
  overlay.Visit(offset, offset + out.size(), [&](const OverlayPiece& piece) {
    MutableByteView target = out.subspan(piece.offset - offset, piece.length);
    switch (piece.kind) {
      case OverlayPiece::Kind::kPlain:
        std::memcpy(target.data(), piece.plain.data(), target.size());
        break;
      case OverlayPiece::Kind::kHole:
        std::memset(target.data(), 0, target.size());
        break;
      case OverlayPiece::Kind::kChunk: {
        auto chunk = chunks_.Get(piece.slice.name, piece.slice.chunk_length, read_cursor);
        if (!chunk.ok()) {
          status = std::move(chunk).status();
          return false;
        }
        std::memcpy(target.data(), chunk->bytes.data() + piece.slice.skip, target.size());
        break;
      }
      case OverlayPiece::Kind::kAbsent:
        status = ReadRecipe(record, piece.offset, target);
        return status.ok();
    }
    return true;
  });
  SILTFS_RETURN_IF_ERROR(status);
  return out.size();
}

Status FileContent::ReadRecipe(const InodeRecord& record, uint64_t offset,
                               MutableByteView out) const {
  if (offset < record.recipe_limit) {
    const uint64_t end = std::min<uint64_t>(record.recipe_limit, offset + out.size());
    RecipeReader reader(chunks_, record.recipe);
    ChunkStore::ReadCursor read_cursor;
    for (reader.Seek(offset); offset < end; reader.Next()) {
      if (!reader.Valid()) {
        if (!reader.status().ok()) return reader.status();
        return Status(StatusCode::kCorruption,
                      fmt::format("the recipe ends before offset {}", offset));
      }
      const RecipeEntry& entry = reader.entry();
      const uint64_t skip = offset - reader.entry_offset();
      const uint64_t count = std::min(entry.length - skip, end - offset);
      if (entry.is_hole()) {
        std::memset(out.data(), 0, count);
      } else {
        SILTFS_ASSIGN_OR_RETURN(
            ChunkBytes chunk,
            chunks_.Get(entry.name, static_cast<uint32_t>(entry.length), read_cursor));
        std::memcpy(out.data(), chunk.bytes.data() + skip, count);
      }
      out = out.subspan(count);
      offset += count;
    }
  }
  std::memset(out.data(), 0, out.size());
  return Status::Ok();
}

// Whether a stream may begin at `offset`. True if a fold would probably begin a chunk there, too.
// Then the fold keeps the chunks that were cut from the stream.
bool FileContent::IsStreamStart(const InodeRecord& record, const Overlay& overlay,
                                uint64_t offset) const {
  if (offset == 0 || overlay.BoundaryAt(offset)) return true;
  return offset == record.recipe_limit && offset == record.recipe.size();
}

Status FileContent::Write(InodeRecord& record, Overlay& overlay, uint64_t offset,
                          ByteView data) const {
  if (data.empty()) return Status::Ok();
  const uint64_t end = offset + data.size();
  if (end < offset || end > kMaxRecipeBytes)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");

  // The stream that this write continues, and the raw bytes that already wait after it.
  Overlay::Range before = offset > 0 ? overlay.RawRunAt(offset - 1) : Overlay::Range{};
  if (before.end < offset) before = {offset, offset};
  before.end = offset;
  Overlay::Range behind = overlay.RawRunAt(end);
  behind.begin = end;
  const uint64_t waiting = before.size() + data.size() + behind.size();

  const bool is_stream = IsStreamStart(record, overlay, before.begin);
  if (waiting < (is_stream ? kLeastToCut : kMaxWaitingBytes)) {
    overlay.PutRaw(offset, data);
  } else {
    SILTFS_RETURN_IF_ERROR(CutStream(overlay, before, data, behind));
  }
  record.size = std::max(record.size, end);
  return Status::Ok();
}

Status FileContent::CutStream(Overlay& overlay, Overlay::Range before, ByteView data,
                              Overlay::Range behind) const {
  // Each chunk must lie in one buffer. So the raw bytes before `data` are copied into `joined`,
  // followed by as many bytes of `data` as the longest possible chunk has. The rest of `data` is
  // cut in place. But if raw bytes follow `data`, all of `data` and these bytes are copied.
  Bytes joined;
  size_t joined_data = 0;  // bytes of `data` in `joined`
  if (before.size() > 0 || behind.size() > 0) {
    joined_data =
        behind.size() > 0 ? data.size() : std::min<size_t>(data.size(), tables_->parameters().max);
    joined.reserve(before.size() + joined_data + behind.size());
    const auto append = [&joined](const OverlayPiece& piece) {
      joined.insert(joined.end(), piece.plain.begin(), piece.plain.end());
      return true;
    };
    overlay.Visit(before.begin, before.end, append);
    joined.insert(joined.end(), data.begin(), data.begin() + static_cast<ptrdiff_t>(joined_data));
    overlay.Visit(behind.begin, behind.end, append);
  }
  StreamCutter cutter(chunks_, *tables_);
  ByteView rest = joined;
  if (joined_data < data.size()) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t in_joined, cutter.Cut(joined, before.size()));
    rest = data.subspan(in_joined - before.size());
  }
  SILTFS_ASSIGN_OR_RETURN(const uint64_t in_rest, cutter.Cut(rest));
  rest = rest.subspan(in_rest);
  SILTFS_ASSIGN_OR_RETURN(const auto parts, cutter.Finish());
  if (parts.empty()) {
    overlay.PutRaw(before.end, data);
    return Status::Ok();
  }
  uint64_t at = before.begin;
  for (const StreamCutter::Part& part : parts) {
    if (part.hole_bytes > 0) {
      overlay.PutHole(at, part.hole_bytes);
      at += part.hole_bytes;
    } else {
      overlay.PutSlices(at, part.slices);
      for (const ChunkSlice& slice : part.slices) at += slice.length;
    }
  }
  overlay.PutRaw(at, rest);
  return Status::Ok();
}

Status FileContent::Truncate(InodeRecord& record, Overlay& overlay, uint64_t size) const {
  if (size > kMaxRecipeBytes)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");
  if (size < record.size) {
    overlay.Erase(size, std::max(record.size, overlay.end()));
    record.recipe_limit = std::min(record.recipe_limit, size);
  }
  record.size = size;
  return Status::Ok();
}

void FileContent::PunchHole(const InodeRecord& record, Overlay& overlay, uint64_t offset,
                            uint64_t length) {
  if (offset >= record.size) return;
  overlay.PutHole(offset, std::min(length, record.size - offset));
}

Result<uint64_t> FileContent::Find(const InodeRecord& record, const Overlay& overlay,
                                   uint64_t offset, bool hole) const {
  uint64_t found = record.size;
  Status status;
  overlay.Visit(offset, record.size, [&](const OverlayPiece& piece) {
    const uint64_t end = piece.offset + piece.length;
    uint64_t at = end;
    if (piece.kind != OverlayPiece::Kind::kAbsent) {
      if ((piece.kind == OverlayPiece::Kind::kHole) == hole) at = piece.offset;
    } else {
      const uint64_t recipe_end = std::clamp(record.recipe_limit, piece.offset, end);
      auto in_recipe = hole ? siltfs::FindHole(chunks_, record.recipe, piece.offset, recipe_end)
                            : siltfs::FindData(chunks_, record.recipe, piece.offset, recipe_end);
      if (!in_recipe.ok()) {
        status = std::move(in_recipe).status();
        return false;
      }
      at = *in_recipe;
      if (at == recipe_end && !hole) at = end;  // there is no data after the recipe
    }
    if (at < end) found = at;
    return at == end;
  });
  SILTFS_RETURN_IF_ERROR(status);
  return found;
}

Result<uint64_t> FileContent::FindData(const InodeRecord& record, const Overlay& overlay,
                                       uint64_t offset) const {
  return Find(record, overlay, offset, false);
}

Result<uint64_t> FileContent::FindHole(const InodeRecord& record, const Overlay& overlay,
                                       uint64_t offset) const {
  return Find(record, overlay, offset, true);
}

Status FileContent::FoldWindow(InodeRecord& record, Overlay& overlay, Overlay::Range window,
                               FoldMode mode) const {
  uint64_t end = record.recipe_limit;
  if (window.end >= record.recipe_limit) {  // the window includes all bytes after the recipe
    end = record.size;
    if (mode == FoldMode::kKeepTail && end > 0) {
      const Overlay::Range tail = overlay.RawRunAt(end - 1);
      if (tail.end == end && tail.size() < kMaxWaitingBytes) end = tail.begin;
    }
    window = {std::min(window.begin, record.recipe_limit), end};
  }
  SILTFS_ASSIGN_OR_RETURN(Recipe recipe,
                          FoldToRecipe(chunks_, *tables_, *this, record, overlay, window, end));
  record.recipe = std::move(recipe);
  record.recipe_limit = end;
  if (window.begin < window.end) overlay.Erase(window.begin, window.end);
  return Status::Ok();
}

Result<uint64_t> FileContent::FoldSome(InodeRecord& record, Overlay& overlay, uint64_t from,
                                       FoldMode mode) const {
  Overlay::Range window = overlay.StretchFrom(from, kFoldRanges, kFoldRawBytes);
  if (window.size() == 0) window = overlay.StretchFrom(0, kFoldRanges, kFoldRawBytes);
  SILTFS_RETURN_IF_ERROR(FoldWindow(record, overlay, window, mode));
  return window.end;
}

bool FileContent::FoldsAtOnce(const Overlay& overlay) {
  return overlay.StretchFrom(0, kFoldRanges, kFoldRawBytes).end >= overlay.end();
}

}  // namespace siltfs
