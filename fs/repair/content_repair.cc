#include "fs/repair/content_repair.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/check/base_finder.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/check/index_check.h"
#include "fs/check/node_finder.h"
#include "fs/check/segment_check_run.h"
#include "fs/mark/subtree_set.h"
#include "fs/meta/id_allocator.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/repair/metadata_edit.h"
#include "fs/repair/node_writer.h"
#include "fs/repair/overlay_repair.h"
#include "fs/repair/recipe_repair.h"
#include "fs/repair/version_edit.h"
#include "fs/segments/chunk_verifier.h"
#include "fs/versions/version_walk.h"

namespace siltfs {
namespace {

class ContentRepair {
 public:
  ContentRepair(RepairSession& session, const CheckOptions& options)
      : session_(session), context_(session.env, options), metadata_(session.kv->Snapshot()) {}

  Result<std::vector<LostRange>> Run(std::vector<LostRange> found) {
    for (const LostRange& range : found) found_[{range.inode, range.snapshot}].push_back(range);
    for (auto& [file, ranges] : found_) std::sort(ranges.begin(), ranges.end());
    SILTFS_RETURN_IF_ERROR(OpenStore());
    for (const auto& [file, ranges] : found_) SILTFS_RETURN_IF_ERROR(CollectNames(file, ranges));
    SILTFS_RETURN_IF_ERROR(FindReadable());
    if (!unreadable_.empty() || node_damaged_) SILTFS_RETURN_IF_ERROR(ChangeFiles());
    std::sort(lost_.begin(), lost_.end());
    return std::move(lost_);
  }

 private:
  Status OpenStore() {
    context_.superblock = session_.superblock;
    context_.segments = {session_.records.segments.begin(), session_.records.segments.end()};
    context_.removed = session_.records.removed;
    SILTFS_RETURN_IF_ERROR(OpenCheckedIndex(context_));
    finder_ = std::make_unique<ChunkFinder>(context_);
    SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(session_.superblock.uuid.bytes));
    bases_ = std::make_unique<BaseFinder>(
        context_, *finder_, ChunkVerifier(std::move(namer), session_.superblock.tag_secret),
        BaseFinder::Trust::kNothing);
    nodes_ = std::make_unique<NodeFinder>(context_, *finder_);
    return Status::Ok();
  }

  // nullopt if the file no longer exists, or if its inode has no version for the snapshot.
  Result<std::optional<InodeRecord>> ReadInode(const FileVersion& file) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, ReadVersion(*metadata_, InodeKey(file.inode), file));
    if (!value) return std::optional<InodeRecord>();
    auto record = InodeRecord::Decode(*value);
    if (!record.ok() || !record->IsRegular()) return std::optional<InodeRecord>();
    return std::optional(std::move(record).value());
  }

  static bool IsFound(const std::vector<LostRange>& ranges, uint64_t offset, uint64_t length) {
    auto range = std::upper_bound(
        ranges.begin(), ranges.end(), offset,
        [](uint64_t wanted, const LostRange& candidate) { return wanted < candidate.offset; });
    if (range != ranges.end() && range->offset < offset + length) return true;
    // CheckAndKeep has merged overlapping ranges, so of the ranges that begin at or before `offset`
    // only the last one can reach beyond it.
    return range != ranges.begin() && std::prev(range)->offset + std::prev(range)->length > offset;
  }

  // Whether a single range contains all these bytes.
  static bool IsInOne(const std::vector<LostRange>& ranges, uint64_t offset, uint64_t length) {
    auto range = std::upper_bound(
        ranges.begin(), ranges.end(), offset,
        [](uint64_t wanted, const LostRange& candidate) { return wanted < candidate.offset; });
    if (range == ranges.begin()) return false;
    --range;
    return range->offset + range->length >= offset + length;
  }

  Status ForEachExtent(
      const FileVersion& file,
      const std::function<Status(const PlacedExtent&, const std::string& key)>& visit) {
    const auto decode = [&visit](const std::string& key, std::string_view value) {
      const auto parts = ParseNumberedKey(Table::kOverlay, key);
      auto extent = OverlayExtent::Decode(value);
      if (!extent.ok() || !parts) return Status::Ok();
      return visit({parts->number, std::move(extent).value()}, key);
    };
    const KeyRange range = RangeOf(Table::kOverlay, file.inode);
    if (file.snapshot != 0) {
      return ForEachVersion(
          *metadata_, range.begin, range.end,
          [&](const VersionKeyParts& version, std::string_view value) {
            return version.snapshot == file.snapshot ? decode(version.key, value) : Status::Ok();
          },
          MalformedVersions::kSkip);
    }
    const auto iterator = metadata_->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next())
      SILTFS_RETURN_IF_ERROR(decode(std::string(iterator->key()), iterator->value()));
    return iterator->status();
  }

  // Collects the names of the suspect chunks.
  Status CollectNames(const FileVersion& file, const std::vector<LostRange>& ranges) {
    SILTFS_ASSIGN_OR_RETURN(const auto record, ReadInode(file));
    if (!record && file.snapshot == 0) return Status::Ok();
    RecipeVisitor visitor;
    visitor.node = [&](const RecipeChild& node, uint8_t level, uint64_t offset) {
      if (!IsFound(ranges, offset, node.covered_bytes)) return false;
      // If one range contains all of the subtree, all its chunks are suspect. Then the subtree is
      // visited only once, even if it occurs in several places.
      return !IsInOne(ranges, offset, node.covered_bytes) || collected_.Insert(node, level);
    };
    visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
      if (!entry.is_hole() && IsFound(ranges, offset, entry.length)) unreadable_.insert(entry.name);
      return Status::Ok();
    };
    visitor.damaged = [this](const RecipeChild&, uint8_t, uint64_t, const Status& why) {
      if (!IsDamage(why)) return why;
      node_damaged_ = true;
      why.IgnoreError("becomes a hole");
      return Status::Ok();
    };
    if (record) SILTFS_RETURN_IF_ERROR(WalkRecipe(*nodes_, record->recipe, visitor));
    return ForEachExtent(file, [&](const PlacedExtent& placed, const std::string&) {
      uint64_t offset = placed.offset;
      for (const ChunkSlice& slice : placed.extent.slices) {
        if (IsFound(ranges, offset, slice.length)) unreadable_.insert(slice.name);
        offset += slice.length;
      }
      return Status::Ok();
    });
  }

  // Removes from unreadable_ the chunks of which some segment has a readable copy.
  Status FindReadable() {
    if (unreadable_.empty()) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(session_.superblock.uuid.bytes));
    const TagKey tag_key(session_.superblock.tag_secret);
    std::optional<SegmentId> resolved;
    return ForEachBlock(
        context_, *finder_, std::nullopt, [&](const BlockHead& head, uint32_t offset) -> Status {
          const bool wanted = std::any_of(
              head.records.begin(), head.records.end(),
              [this](const ChunkRecord& chunk) { return unreadable_.contains(chunk.name); });
          if (!wanted) return Status::Ok();
          SILTFS_ASSIGN_OR_RETURN(const auto reader, finder_->Open(head.segment));
          if (head.codec == BlockCodecId::kZstdDelta && resolved != head.segment) {
            // One search for all bases of the segment.
            const auto bases = reader->ReadBaseTable();
            bases.status().IgnoreError("each base is then searched alone");
            if (bases.ok()) SILTFS_RETURN_IF_ERROR(bases_->Resolve(*bases));
            resolved = head.segment;
          }
          const auto block = reader->ReadBlock(offset, kUsualBlockBytes, bases_.get());
          if (!block.ok()) {
            // A device that fails now may still have the chunks, so nothing is removed from files.
            const bool lost = IsDamage(block.status()) && !block.status().Is(StatusCode::kIoError);
            return lost ? Status::Ok() : block.status();
          }
          for (size_t i = 0; i < head.records.size(); ++i) {
            const ChunkRecord& chunk = head.records[i];
            if (const Status* missing = (*block)->missing(i)) {
              if (missing->Is(StatusCode::kIoError)) return *missing;
              continue;
            }
            const ByteView bytes = (*block)->chunk(i);
            if (!unreadable_.contains(chunk.name) || tag_key.TagOf(bytes) != chunk.tag) continue;
            const ChunkName name =
                chunk.salt == 0 ? namer.NameOf(bytes) : namer.SaltedNameOf(bytes, chunk.salt);
            if (name == chunk.name) unreadable_.erase(chunk.name);
          }
          return Status::Ok();
        });
  }

  // Claims ids like a mount, so that the next mount recovers the store.
  Result<std::unique_ptr<NodeWriter>> BeginWriting() {
    KvStore& kv = *session_.kv;
    IdAllocator ids(session_.records.ids,
                    [&kv](const std::vector<Mutation>& m) { return kv.Write(m); });
    SILTFS_RETURN_IF_ERROR(ids.BeginMount());
    NodeWriter::Options options;
    options.store = session_.store;
    options.segments = &session_.segments;
    options.superblock = session_.superblock;
    options.first_segment = ids.first_segment();
    options.segment_limit = ids.segment_limit();
    options.first_sequence = ids.first_sequence();
    options.last_commit = session_.records.last_commit;
    return NodeWriter::Create(session_.env, std::move(options), *nodes_);
  }

  // Versions change first, in a write of their own: the changes of live files then keep their old
  // values only for snapshots that have no version yet.
  Status ChangeFiles() {
    SILTFS_ASSIGN_OR_RETURN(const auto writer, BeginWriting());
    RecipeRepair recipes(*nodes_, *writer,
                         [this](const ChunkName& name) { return unreadable_.contains(name); });
    VersionEdit versions(*metadata_);
    MetadataEdit live(*session_.kv);
    for (const auto& [file, ranges] : found_) {
      SILTFS_ASSIGN_OR_RETURN(auto record, ReadInode(file));
      if (!record && file.snapshot == 0) continue;
      if (record) {
        const size_t before = lost_.size();
        SILTFS_ASSIGN_OR_RETURN(const bool changed,
                                recipes.Repair(file.inode, record->recipe, lost_));
        for (size_t i = before; i < lost_.size(); ++i) lost_[i].snapshot = file.snapshot;
        if (changed && file.snapshot == 0) live.Put(InodeKey(file.inode), record->Encode());
        if (changed && file.snapshot != 0)
          versions.Put(InodeKey(file.inode), file.snapshot, record->Encode());
      }
      SILTFS_RETURN_IF_ERROR(ChangeOverlay(file, versions, live));
    }
    SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, writer->Finish());
    std::vector<Mutation> first = versions.Take();
    for (const auto& [id, segment] : records) first.push_back({SegmentKey(id), segment.Encode()});
    if (!first.empty()) SILTFS_RETURN_IF_ERROR(session_.kv->Write(first));
    // Only now, so that the step sees the changed versions.
    MetadataEdit second(*session_.kv);
    live.MoveTo(second);
    return second.Write();
  }

  Status ChangeOverlay(const FileVersion& file, VersionEdit& versions, MetadataEdit& live) {
    const auto lost = [this](const ChunkSlice& slice) { return unreadable_.contains(slice.name); };
    return ForEachExtent(file, [&](const PlacedExtent& placed, const std::string& key) -> Status {
      const std::vector<PlacedExtent> pieces = WithoutLost(placed, lost);
      if (pieces.empty()) return Status::Ok();
      if (file.snapshot == 0) live.Remove(key);
      for (const PlacedExtent& piece : pieces) {
        const std::string piece_key = OverlayKey(file.inode, piece.offset);
        if (file.snapshot == 0) {
          live.Put(piece_key, piece.extent.Encode());
        } else {
          SILTFS_RETURN_IF_ERROR(
              versions.PutPart(piece_key, key, file.snapshot, piece.extent.Encode()));
        }
        if (piece.extent.kind == OverlayExtent::Kind::kHole)
          lost_.push_back({file.inode, piece.offset, piece.extent.length, file.snapshot});
      }
      return Status::Ok();
    });
  }

  RepairSession& session_;
  CheckContext context_;
  const std::shared_ptr<const KvSnapshot> metadata_;
  std::unique_ptr<ChunkFinder> finder_;
  std::unique_ptr<BaseFinder> bases_;
  std::unique_ptr<NodeFinder> nodes_;
  std::map<FileVersion, std::vector<LostRange>> found_;
  SubtreeSet collected_;
  std::set<ChunkName> unreadable_;
  bool node_damaged_ = false;
  std::vector<LostRange> lost_;
};

}  // namespace

Result<std::vector<LostRange>> RepairContents(RepairSession& session,
                                              const CheckOptions& check_options,
                                              std::vector<LostRange> found) {
  if (found.empty()) return std::vector<LostRange>();
  CheckOptions quiet = check_options;
  quiet.on_finding = nullptr;
  quiet.on_progress = nullptr;
  quiet.on_lost = nullptr;
  return ContentRepair(session, quiet).Run(std::move(found));
}

}  // namespace siltfs
