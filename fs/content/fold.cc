#include "fs/content/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "chunker/zeros.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/recipe/recipe_splice.h"

namespace siltfs {
namespace {

// Approximate bytes of a changed stretch that are read and cut at once.
constexpr uint64_t kReadAheadBytes = 1u << 20;
// After a change, the base (the old recipe's content) is cut again until a new cut point coincides
// with the beginning of a chunk of the base. In a base that siltfs has cut, this takes a few
// chunks; in any other base it may never happen. So the limit is this distance from the end of the
// change: beyond it, the new chunk ends where the next chunk of the base begins.
constexpr uint64_t kMostRecutBytes = 16u << 20;

class Folder {
 public:
  Folder(ChunkStore& chunks, const ChunkerTables& tables, const FileContent& content,
         const InodeRecord& record, const Overlay& overlay, Overlay::Range window, uint64_t end)
      : chunks_(chunks),
        tables_(tables),
        content_(content),
        record_(record),
        overlay_(overlay),
        window_(window),
        end_(end),
        base_end_(std::min(record.recipe_limit, end)),
        base_size_(record.recipe.size()),
        base_(chunks, record.recipe) {}

  Result<Recipe> Run();

 private:
  // A stretch [begin, end) that differs from the base. Cutting starts at `start`, which is at or
  // before `begin`.
  struct Region {
    uint64_t start;
    uint64_t begin;
    uint64_t end;
  };
  // The content from a position on: a hole, one whole chunk, or bytes that may have to be cut.
  struct Layout {
    enum class Kind : uint8_t { kHole, kChunk, kBytes };
    Kind kind = Kind::kBytes;
    uint64_t length = 0;
    RecipeEntry chunk;  // kChunk: a whole chunk that ends at a cut point
  };
  // An entry of the base.
  struct BaseEntry {
    RecipeEntry entry;
    uint64_t begin = 0;
    uint64_t end() const { return begin + entry.length; }
  };

  Result<std::optional<BaseEntry>> BaseAt(uint64_t offset);
  Result<std::vector<Region>> FindRegions();
  Result<uint64_t> StartOf(uint64_t begin);
  Result<bool> InStep(uint64_t position);
  Result<Layout> LayoutAt(uint64_t position);
  // Appends at least one entry for the content from `position` on. Returns the end of the entries.
  Result<uint64_t> Step(uint64_t position, uint64_t region_end, std::vector<RecipeEntry>& entries);
  Result<bool> ReadMore(uint64_t at, uint64_t region_end, Bytes& buffer);
  Result<bool> MayTakeOver(uint64_t position, uint64_t region_end);
  Result<uint64_t> CutBytes(uint64_t position, uint64_t region_end,
                            std::vector<RecipeEntry>& entries);

  ChunkStore& chunks_;
  const ChunkerTables& tables_;
  const FileContent& content_;
  const InodeRecord& record_;
  const Overlay& overlay_;
  const Overlay::Range window_;
  const uint64_t end_;        // of the new recipe
  const uint64_t base_end_;   // the file uses the base up to this offset
  const uint64_t base_size_;  // of the old recipe
  RecipeReader base_;
};

Result<std::optional<Folder::BaseEntry>> Folder::BaseAt(uint64_t offset) {
  base_.Seek(offset);
  if (!base_.status().ok()) return base_.status();
  if (!base_.Valid()) return std::optional<BaseEntry>();
  return std::optional<BaseEntry>({base_.entry(), base_.entry_offset()});
}

// Returns the offset at which cutting must start because of a change at `begin`. The chunks are
// then the same as if the file had always had the new content.
Result<uint64_t> Folder::StartOf(uint64_t begin) {
  if (begin == 0) return begin;
  SILTFS_ASSIGN_OR_RETURN(auto before, BaseAt(begin - 1));
  if (!before || before->entry.is_hole()) return begin;
  if (before->end() > begin) return before->begin;  // the change is within a chunk
  // The previous chunk ends exactly at `begin`. If another chunk follows, this is a cut point.
  // If not, a hole or the end of the file ended the chunk, and it must be cut again.
  SILTFS_ASSIGN_OR_RETURN(auto next, BaseAt(begin));
  return next && !next->entry.is_hole() ? begin : before->begin;
}

Result<std::vector<Folder::Region>> Folder::FindRegions() {
  std::vector<Overlay::Range> changed =
      overlay_.CoveredRanges({window_.begin, std::min(window_.end, base_end_)});
  // The part after the base is a region, too. If the base was truncated, this part is a region even
  // if it is empty, because the last chunk of the base then has a new end.
  if (end_ > base_end_ || base_end_ < base_size_) {
    if (!changed.empty() && changed.back().end == base_end_) {
      changed.back().end = end_;
    } else {
      changed.push_back({base_end_, end_});
    }
  }
  std::vector<Region> regions;
  for (const Overlay::Range& range : changed) {
    SILTFS_ASSIGN_OR_RETURN(uint64_t start, StartOf(range.begin));
    regions.push_back({start, range.begin, range.end});
  }
  return regions;
}

// Whether the base can be taken over from `position` on.
Result<bool> Folder::InStep(uint64_t position) {
  if (position >= base_end_) return false;
  SILTFS_ASSIGN_OR_RETURN(auto entry, BaseAt(position));
  return entry && (entry->begin == position || entry->entry.is_hole());
}

Result<Folder::Layout> Folder::LayoutAt(uint64_t position) {
  OverlayPiece piece;
  overlay_.Visit(position, end_, [&piece](const OverlayPiece& first) {
    piece = first;
    return false;
  });
  switch (piece.kind) {
    case OverlayPiece::Kind::kPlain:
      return Layout{Layout::Kind::kBytes, piece.length, {}};
    case OverlayPiece::Kind::kHole:
      return Layout{Layout::Kind::kHole, piece.length, {}};
    case OverlayPiece::Kind::kChunk:
      if (!piece.slice.IsWhole()) return Layout{Layout::Kind::kBytes, piece.length, {}};
      return Layout{Layout::Kind::kChunk, piece.length,
                    RecipeEntry::Chunk(piece.slice.name, piece.length)};
    case OverlayPiece::Kind::kAbsent:
      break;
  }
  if (position >= base_end_) return Layout{Layout::Kind::kHole, piece.length, {}};
  const uint64_t piece_end = std::min(position + piece.length, base_end_);
  SILTFS_ASSIGN_OR_RETURN(auto entry, BaseAt(position));
  if (!entry) {
    return Status(StatusCode::kCorruption,
                  fmt::format("the recipe ends before offset {}", position));
  }
  const uint64_t length = std::min(entry->end(), piece_end) - position;
  if (entry->entry.is_hole()) return Layout{Layout::Kind::kHole, length, {}};
  if (entry->begin == position && entry->end() < piece_end) {
    SILTFS_ASSIGN_OR_RETURN(auto next, BaseAt(entry->end()));
    if (next && !next->entry.is_hole()) return Layout{Layout::Kind::kChunk, length, entry->entry};
  }
  return Layout{Layout::Kind::kBytes, length, {}};
}

// Appends the bytes from `at` on to `buffer`. Within the region these are about kReadAheadBytes at
// most; after the region they are the bytes of one Layout. Returns false and appends nothing if
// there is a hole or the end of the new recipe at `at`. Also returns false if `at` lies more than
// kMostRecutBytes after the region and the base can be taken over from `at` on.
Result<bool> Folder::ReadMore(uint64_t at, uint64_t region_end, Bytes& buffer) {
  if (at > region_end && at - region_end > kMostRecutBytes) {
    SILTFS_ASSIGN_OR_RETURN(const bool in_step, InStep(at));
    if (in_step) return false;
  }
  const uint64_t wanted = std::max(at + 1, std::min(region_end, at + kReadAheadBytes));
  uint64_t stop = at;
  while (stop < std::min(wanted, end_)) {
    SILTFS_ASSIGN_OR_RETURN(Layout layout, LayoutAt(stop));
    if (layout.kind == Layout::Kind::kHole) break;
    stop += layout.length;
  }
  if (stop == at) return false;
  const size_t before = buffer.size();
  buffer.resize(before + (stop - at));
  SILTFS_ASSIGN_OR_RETURN(
      size_t got, content_.Read(record_, overlay_, at, MutableByteView(buffer).subspan(before)));
  if (got != stop - at)
    return Status(StatusCode::kCorruption, "the file is shorter than its inode says");
  return true;
}

// Whether the content at `position` need not be cut.
Result<bool> Folder::MayTakeOver(uint64_t position, uint64_t region_end) {
  if (position == end_) return true;
  SILTFS_ASSIGN_OR_RETURN(Layout layout, LayoutAt(position));
  if (layout.kind != Layout::Kind::kBytes) return true;
  if (position < region_end) return false;
  return InStep(position);
}

Result<uint64_t> Folder::CutBytes(uint64_t position, uint64_t region_end,
                                  std::vector<RecipeEntry>& entries) {
  struct Cut {
    size_t begin;
    size_t length;
    bool hole;
  };
  std::vector<Cut> cuts;
  Bytes buffer;  // the content from `position` on, as far as it was read
  bool more = true;
  size_t done = 0;
  std::optional<CutSequence> sequence;  // of the bytes in the buffer
  for (bool existing = false; !existing && done < kReadAheadBytes;) {
    const ByteView rest = ByteView(buffer).subspan(done);
    if (!sequence) sequence.emplace(tables_, rest);
    std::optional<size_t> length = sequence->Next();
    if (!length && more) {
      sequence.reset();
      SILTFS_ASSIGN_OR_RETURN(more, ReadMore(position + buffer.size(), region_end, buffer));
      continue;
    }
    if (!length) length = rest.size();  // there are no more bytes: the chunk ends here
    cuts.push_back({done, *length, IsAllZero(rest.first(*length))});
    done += *length;
    SILTFS_ASSIGN_OR_RETURN(existing, MayTakeOver(position + done, region_end));
  }

  std::vector<ByteView> to_put;
  for (const Cut& cut : cuts) {
    if (!cut.hole) to_put.push_back(ByteView(buffer).subspan(cut.begin, cut.length));
  }
  std::vector<ChunkName> names(to_put.size());
  SILTFS_RETURN_IF_ERROR(chunks_.Put(to_put, names));
  size_t next_name = 0;
  for (const Cut& cut : cuts) {
    entries.push_back(cut.hole ? RecipeEntry::Hole(cut.length)
                               : RecipeEntry::Chunk(names[next_name++], cut.length));
  }
  return position + done;
}

Result<uint64_t> Folder::Step(uint64_t position, uint64_t region_end,
                              std::vector<RecipeEntry>& entries) {
  SILTFS_ASSIGN_OR_RETURN(Layout layout, LayoutAt(position));
  switch (layout.kind) {
    case Layout::Kind::kHole:
      entries.push_back(RecipeEntry::Hole(layout.length));
      return position + layout.length;
    case Layout::Kind::kChunk:
      entries.push_back(layout.chunk);
      return position + layout.length;
    case Layout::Kind::kBytes:
      break;
  }
  return CutBytes(position, region_end, entries);
}

Result<Recipe> Folder::Run() {
  SILTFS_ASSIGN_OR_RETURN(std::vector<Region> regions, FindRegions());
  RecipeSplicer splicer(chunks_, record_.recipe);
  uint64_t done = 0;  // the new recipe is complete up to here
  for (size_t next = 0; next < regions.size();) {
    uint64_t position = std::max(regions[next].start, done);
    uint64_t region_end = regions[next].end;
    ++next;
    SILTFS_RETURN_IF_ERROR(splicer.Keep(position));
    std::vector<RecipeEntry> entries;
    for (;;) {
      while (next < regions.size() && regions[next].start <= position) {
        region_end = std::max(region_end, regions[next].end);
        ++next;
      }
      if (position >= region_end) {
        if (position == end_) break;
        SILTFS_ASSIGN_OR_RETURN(bool in_step, InStep(position));
        if (in_step) break;
      }
      SILTFS_ASSIGN_OR_RETURN(position, Step(position, region_end, entries));
      for (const RecipeEntry& entry : entries) SILTFS_RETURN_IF_ERROR(splicer.Append(entry));
      entries.clear();
    }
    done = position;
    SILTFS_RETURN_IF_ERROR(splicer.Skip(position == end_ ? base_size_ : position));
  }
  SILTFS_ASSIGN_OR_RETURN(Recipe recipe, splicer.Finish());
  if (recipe.size() != end_) {
    return Status(StatusCode::kCorruption,
                  fmt::format("a fold made {} bytes instead of {}", recipe.size(), end_));
  }
  return recipe;
}

}  // namespace

Result<Recipe> FoldToRecipe(ChunkStore& chunks, const ChunkerTables& tables,
                            const FileContent& content, const InodeRecord& record,
                            const Overlay& overlay, Overlay::Range window, uint64_t end) {
  return Folder(chunks, tables, content, record, overlay, window, end).Run();
}

}  // namespace siltfs
