#include "fs/core/damaged_files.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "fs/mark/subtree_set.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

class DamagedFileFinder {
 public:
  DamagedFileFinder(ChunkStore& chunks, std::span<const DamagedBlock> damage, size_t most)
      : chunks_(chunks), most_(most) {
    for (const DamagedBlock& block : damage) {
      for (const DamagedChunk& chunk : block.chunks) {
        if (chunk.known()) prefixes_.push_back(chunk.name_prefix);
      }
    }
    std::sort(prefixes_.begin(), prefixes_.end());
  }

  Status Walk(uint64_t inode, const InodeRecord& record) {
    const uint64_t limit = record.recipe_limit;
    RecipeVisitor visitor;
    visitor.node = [&](const RecipeChild& node, uint8_t level, uint64_t offset) {
      EndSubtrees(offset);
      return offset < limit && (level == 0 || node.covered_bytes > limit - offset ||
                                BeginSubtree(inode, node, level, offset));
    };
    visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
      if (offset >= limit || entry.is_hole()) return Status::Ok();
      if (IsLost(entry.name, static_cast<uint32_t>(entry.length)))
        NoteInRecipe(inode, offset, std::min(entry.length, limit - offset));
      return Status::Ok();
    };
    visitor.damaged = [&](const RecipeChild& node, uint8_t, uint64_t offset, const Status& why) {
      if (!why.Is(StatusCode::kCorruption)) return why;
      if (offset < limit) NoteInRecipe(inode, offset, std::min(node.covered_bytes, limit - offset));
      return Status::Ok();
    };
    SILTFS_RETURN_IF_ERROR(WalkRecipe(chunks_, record.recipe, visitor));
    EndSubtrees(UINT64_MAX);
    return Status::Ok();
  }

  void Look(uint64_t inode, uint64_t offset, const OverlayExtent& extent) {
    for (const ChunkSlice& slice : extent.slices) {
      if (IsLost(slice.name, slice.chunk_length)) Note(inode, offset, slice.length);
      offset += slice.length;
    }
  }

  DamagedFiles Take() {
    DamagedFiles found;
    found.count = files_.size() + beyond_;
    for (const auto& [inode, file] : files_) found.files.push_back(file);
    return found;
  }

 private:
  // The unreadable bytes of a subtree: the offset of the first within it, and their number.
  struct Loss {
    uint64_t offset = UINT64_MAX;
    uint64_t bytes = 0;
  };
  // A recipe subtree that the walk has entered and not left yet.
  struct Subtree {
    ChunkName key;
    uint8_t level = 0;
    uint64_t begin = 0;  // in the file
    uint64_t end = 0;
    Loss loss;
  };

  // Enters a subtree and returns true. If the subtree was walked before, adds its lost bytes to
  // those of the file and returns false.
  bool BeginSubtree(uint64_t inode, const RecipeChild& node, uint8_t level, uint64_t offset) {
    if (whole_.Contains(node, level)) return false;
    Subtree subtree{SubtreeSet::KeyOf(node, level), level, offset, offset + node.covered_bytes, {}};
    const auto known = losses_.find(subtree.key);
    if (known != losses_.end()) {
      NoteInRecipe(inode, offset + known->second.offset, known->second.bytes);
      return false;
    }
    subtrees_.push_back(subtree);
    return true;
  }

  // Leaves the subtrees that end at or before `offset`, and remembers their losses. Call it when
  // the walk reaches `offset`.
  void EndSubtrees(uint64_t offset) {
    for (; !subtrees_.empty() && subtrees_.back().end <= offset; subtrees_.pop_back()) {
      const Subtree& ended = subtrees_.back();
      if (ended.loss.bytes == 0) {
        whole_.Insert(ended.key, ended.level);
      } else {
        losses_[ended.key] = ended.loss;
      }
    }
  }

  void NoteInRecipe(uint64_t inode, uint64_t offset, uint64_t bytes) {
    for (Subtree& subtree : subtrees_) {
      subtree.loss.offset = std::min(subtree.loss.offset, offset - subtree.begin);
      subtree.loss.bytes += bytes;
    }
    Note(inode, offset, bytes);
  }

  bool IsLost(const ChunkName& name, uint32_t length) {
    if (!std::binary_search(prefixes_.begin(), prefixes_.end(), name.Prefix64())) return false;
    const auto known = lost_.find(name);
    if (known != lost_.end()) return known->second;
    const auto got = chunks_.Get(name, length);
    const bool lost = got.status().Is(StatusCode::kCorruption);
    lost_[name] = lost;
    return lost;
  }

  void Note(uint64_t inode, uint64_t offset, uint64_t bytes) {
    const auto known = files_.find(inode);
    if (known != files_.end()) {
      known->second.offset = std::min(known->second.offset, offset);
      known->second.bytes += bytes;
    } else if (files_.size() < most_) {
      files_[inode] = {inode, offset, bytes};
    } else if (std::exchange(last_beyond_, inode) != inode) {
      ++beyond_;
    }
  }

  ChunkStore& chunks_;
  const size_t most_;
  std::vector<uint64_t> prefixes_;  // ascending
  std::unordered_map<ChunkName, bool> lost_;
  SubtreeSet whole_;                            // walked subtrees without lost bytes
  std::unordered_map<ChunkName, Loss> losses_;  // of the other subtrees, by SubtreeSet::KeyOf
  std::vector<Subtree> subtrees_;               // from the root down, in the current file
  std::map<uint64_t, DamagedFile> files_;
  uint64_t beyond_ = 0;
  uint64_t last_beyond_ = 0;
};

}  // namespace

Result<DamagedFiles> FindDamagedFiles(const KvSnapshot& metadata, ChunkStore& chunks,
                                      std::span<const DamagedBlock> damage, size_t most,
                                      const std::function<Status()>& pace) {
  DamagedFileFinder finder(chunks, damage, most);
  const KeyRange inodes = RangeOf(Table::kInode);
  auto inode = metadata.NewIteratorBelow(inodes.end);
  for (inode->Seek(inodes.begin); inode->Valid(); inode->Next()) {
    const auto number = ParseInodeKey(Table::kInode, inode->key());
    const auto record = InodeRecord::Decode(inode->value());
    if (!number || !record.ok() || !record->IsRegular()) continue;
    SILTFS_RETURN_IF_ERROR(finder.Walk(*number, *record));
    SILTFS_RETURN_IF_ERROR(pace());
  }
  SILTFS_RETURN_IF_ERROR(inode->status());
  const KeyRange extents = RangeOf(Table::kOverlay);
  auto extent = metadata.NewIteratorBelow(extents.end);
  for (extent->Seek(extents.begin); extent->Valid(); extent->Next()) {
    const auto place = ParseNumberedKey(Table::kOverlay, extent->key());
    const auto decoded = OverlayExtent::Decode(extent->value());
    if (place && decoded.ok()) finder.Look(place->inode, place->number, *decoded);
    SILTFS_RETURN_IF_ERROR(pace());
  }
  SILTFS_RETURN_IF_ERROR(extent->status());
  return finder.Take();
}

}  // namespace siltfs
