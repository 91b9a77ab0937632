#include "fs/ops/content_ops.h"

#include <cstring>
#include <optional>
#include <vector>

#include "fs/recipe/recipe_reader.h"

namespace siltfs {
namespace {

// So many chunks are located together.
constexpr size_t kLocateBatch = 256;

class ChunkReads final : public ContentSource::Reader {
 public:
  explicit ChunkReads(ChunkStore& chunks) : chunks_(chunks) {}

  Status Read(const ChunkPlace& place, MutableByteView out) override {
    const ChunkStore::Use use(chunks_);
    chunks_.NoteUse();
    SILTFS_ASSIGN_OR_RETURN(const ChunkBytes chunk,
                            chunks_.GetAt(place.location, place.name, place.length, cursor_));
    if (chunk.bytes.size() != out.size())
      return {StatusCode::kInvalidArgument, "the chunk has another length"};
    std::memcpy(out.data(), chunk.bytes.data(), out.size());
    chunks_.CountRead(out.size());
    return Status::Ok();
  }

 private:
  ChunkStore& chunks_;
  ChunkStore::ReadCursor cursor_;
};

}  // namespace

std::unique_ptr<ContentSource::Reader> ContentOps::NewReader() {
  return std::make_unique<ChunkReads>(store_.chunks());
}

Status ContentOps::Visit(InodeNumber file, uint64_t offset,
                         const std::function<bool(const ContentPiece&)>& visit) {
  const ChunkStore::Use use(store_.chunks());
  Recipe recipe;
  uint64_t size = 0;
  bool folded = false;
  const Status loaded = inodes_.WithLoaded(file, false, [&](const Inode& inode) -> Status {
    SILTFS_RETURN_IF_ERROR(CheckRegular(inode.record));
    size = inode.record.size;
    folded = FileContent::IsFolded(inode.record);
    if (folded) recipe = inode.record.recipe;
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(loaded);
  if (offset >= size) return Status::Ok();
  if (!folded) {
    visit({.kind = ContentPiece::Kind::kOther, .offset = offset, .length = size - offset});
    return Status::Ok();
  }
  RecipeReader reader(store_.chunks(), recipe);
  ChunkReader::Place last;
  reader.Seek(offset);
  while (reader.Valid()) {
    std::vector<ContentPiece> pieces;
    std::vector<ChunkName> names;
    for (; reader.Valid() && names.size() < kLocateBatch && pieces.size() < 2 * kLocateBatch;
         reader.Next()) {
      const RecipeEntry& entry = reader.entry();
      ContentPiece piece{.offset = reader.entry_offset(), .length = entry.length};
      if (!entry.is_hole()) {
        piece.kind = ContentPiece::Kind::kChunk;
        piece.chunk = {.name = entry.name, .length = static_cast<uint32_t>(entry.length)};
        names.push_back(entry.name);
      }
      pieces.push_back(piece);
    }
    std::vector<std::optional<ChunkReader::Place>> places(names.size());
    store_.chunks().Locate(names, last, places);
    size_t next = 0;
    for (ContentPiece& piece : pieces) {
      if (piece.kind == ContentPiece::Kind::kChunk) {
        const auto& place = places[next++];
        if (place) {
          piece.chunk.location = {place->segment, place->ordinal, place->block_offset};
        } else {
          piece.chunk.location = {kNoSegment, 0, 0};
        }
      }
      if (!visit(piece)) return Status::Ok();
    }
  }
  return reader.status();
}

}  // namespace siltfs
