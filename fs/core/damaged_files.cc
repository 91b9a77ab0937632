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
#include "fs/versions/version_walk.h"

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

  Status Walk(const FileVersion& file, const InodeRecord& record) {
    const uint64_t limit = record.recipe_limit;
    RecipeVisitor visitor;
    visitor.node = [&](const RecipeChild& node, uint8_t level, uint64_t offset) {
      EndSubtrees(offset);
      return offset < limit && (level == 0 || node.covered_bytes > limit - offset ||
                                BeginSubtree(file, node, level, offset));
    };
    visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
      if (offset >= limit || entry.is_hole()) return Status::Ok();
      if (IsLost(entry.name, static_cast<uint32_t>(entry.length)))
        NoteInRecipe(file, offset, std::min(entry.length, limit - offset));
      return Status::Ok();
    };
    visitor.damaged = [&](const RecipeChild& node, uint8_t, uint64_t offset, const Status& why) {
      if (!why.Is(StatusCode::kCorruption)) return why;
      if (offset < limit) NoteInRecipe(file, offset, std::min(node.covered_bytes, limit - offset));
      return Status::Ok();
    };
    SILTFS_RETURN_IF_ERROR(WalkRecipe(chunks_, record.recipe, visitor));
    EndSubtrees(UINT64_MAX);
    return Status::Ok();
  }

  void Look(const FileVersion& file, uint64_t offset, const OverlayExtent& extent) {
    for (const ChunkSlice& slice : extent.slices) {
      if (IsLost(slice.name, slice.chunk_length)) Note(file, offset, slice.length);
      offset += slice.length;
    }
  }

  DamagedFiles Take() {
    DamagedFiles found;
    found.count = files_.size() + beyond_;
    for (const auto& [version, file] : files_) found.files.push_back(file);
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
  bool BeginSubtree(const FileVersion& file, const RecipeChild& node, uint8_t level,
                    uint64_t offset) {
    if (whole_.Contains(node, level)) return false;
    Subtree subtree{SubtreeSet::KeyOf(node, level), level, offset, offset + node.covered_bytes, {}};
    const auto known = losses_.find(subtree.key);
    if (known != losses_.end()) {
      NoteInRecipe(file, offset + known->second.offset, known->second.bytes);
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

  void NoteInRecipe(const FileVersion& file, uint64_t offset, uint64_t bytes) {
    for (Subtree& subtree : subtrees_) {
      subtree.loss.offset = std::min(subtree.loss.offset, offset - subtree.begin);
      subtree.loss.bytes += bytes;
    }
    Note(file, offset, bytes);
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

  void Note(const FileVersion& file, uint64_t offset, uint64_t bytes) {
    const auto known = files_.find(file);
    if (known != files_.end()) {
      known->second.offset = std::min(known->second.offset, offset);
      known->second.bytes += bytes;
    } else if (files_.size() < most_) {
      files_[file] = {file, offset, bytes};
    } else if (std::exchange(last_beyond_, file) != file) {
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
  std::map<FileVersion, DamagedFile> files_;
  uint64_t beyond_ = 0;
  FileVersion last_beyond_;
};

using VisitRecord =
    std::function<Status(SnapshotNumber snapshot, std::string_view key, std::string_view value)>;

// Visits the records of a table, and their versions.
Status ForEachRecord(const KvSnapshot& metadata, Table table, const VisitRecord& visit) {
  const KeyRange range = RangeOf(table);
  const auto record = metadata.NewIteratorBelow(range.end);
  for (record->Seek(range.begin); record->Valid(); record->Next())
    SILTFS_RETURN_IF_ERROR(visit(0, record->key(), record->value()));
  SILTFS_RETURN_IF_ERROR(record->status());
  return ForEachVersion(
      metadata, range.begin, range.end,
      [&visit](const VersionKeyParts& version, std::string_view value) {
        return visit(version.snapshot, version.key, value);
      },
      MalformedVersions::kSkip);
}

}  // namespace

Result<DamagedFiles> FindDamagedFiles(const KvSnapshot& metadata, ChunkStore& chunks,
                                      std::span<const DamagedBlock> damage, size_t most,
                                      const std::function<Status()>& pace) {
  DamagedFileFinder finder(chunks, damage, most);
  const auto walk = [&](SnapshotNumber snapshot, std::string_view key, std::string_view value) {
    const auto number = ParseInodeKey(Table::kInode, key);
    const auto record = InodeRecord::Decode(value);
    if (!record.ok() || !number || !record->IsRegular()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(finder.Walk({*number, snapshot}, *record));
    return pace();
  };
  SILTFS_RETURN_IF_ERROR(ForEachRecord(metadata, Table::kInode, walk));
  const auto look = [&](SnapshotNumber snapshot, std::string_view key, std::string_view value) {
    const auto place = ParseNumberedKey(Table::kOverlay, key);
    const auto extent = OverlayExtent::Decode(value);
    if (extent.ok() && place) finder.Look({place->inode, snapshot}, place->number, *extent);
    return pace();
  };
  SILTFS_RETURN_IF_ERROR(ForEachRecord(metadata, Table::kOverlay, look));
  return finder.Take();
}

}  // namespace siltfs
