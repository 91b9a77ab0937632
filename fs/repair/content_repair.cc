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
#include "fs/segments/chunk_verifier.h"

namespace siltfs {
namespace {

class ContentRepair {
 public:
  ContentRepair(RepairSession& session, const CheckOptions& options)
      : session_(session), context_(session.env, options), edit_(*session.kv) {}

  Result<std::vector<LostRange>> Run(std::vector<LostRange> found) {
    for (const LostRange& range : found) found_[range.inode].push_back(range);
    for (auto& [inode, ranges] : found_) std::sort(ranges.begin(), ranges.end());
    SILTFS_RETURN_IF_ERROR(OpenStore());
    for (const auto& [inode, ranges] : found_) SILTFS_RETURN_IF_ERROR(CollectNames(inode, ranges));
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

  // nullopt if the file no longer exists.
  Result<std::optional<InodeRecord>> ReadInode(uint64_t inode) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(InodeKey(inode)));
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
      uint64_t inode,
      const std::function<Status(const PlacedExtent&, const std::string& key)>& visit) {
    const KeyRange range = RangeOf(Table::kOverlay, inode);
    const auto iterator = edit_.snapshot().NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const std::string key(iterator->key());
      const auto parts = ParseNumberedKey(Table::kOverlay, key);
      auto extent = OverlayExtent::Decode(iterator->value());
      if (!parts || !extent.ok()) continue;
      SILTFS_RETURN_IF_ERROR(visit({parts->number, std::move(extent).value()}, key));
    }
    return iterator->status();
  }

  // Collects the names of the suspect chunks.
  Status CollectNames(uint64_t inode, const std::vector<LostRange>& ranges) {
    SILTFS_ASSIGN_OR_RETURN(const auto record, ReadInode(inode));
    if (!record) return Status::Ok();
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
    SILTFS_RETURN_IF_ERROR(WalkRecipe(*nodes_, record->recipe, visitor));
    return ForEachExtent(inode, [&](const PlacedExtent& placed, const std::string&) {
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

  Status ChangeFiles() {
    SILTFS_ASSIGN_OR_RETURN(const auto writer, BeginWriting());
    RecipeRepair recipes(*nodes_, *writer,
                         [this](const ChunkName& name) { return unreadable_.contains(name); });
    for (const auto& [inode, ranges] : found_) {
      SILTFS_ASSIGN_OR_RETURN(auto record, ReadInode(inode));
      if (!record) continue;
      SILTFS_ASSIGN_OR_RETURN(const bool changed, recipes.Repair(inode, record->recipe, lost_));
      if (changed) edit_.Put(InodeKey(inode), record->Encode());
      SILTFS_RETURN_IF_ERROR(ChangeOverlay(inode));
    }
    SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, writer->Finish());
    for (const auto& [id, segment] : records) edit_.Put(SegmentKey(id), segment.Encode());
    return edit_.Write();
  }

  Status ChangeOverlay(uint64_t inode) {
    const auto lost = [this](const ChunkSlice& slice) { return unreadable_.contains(slice.name); };
    return ForEachExtent(inode, [&](const PlacedExtent& placed, const std::string& key) {
      const std::vector<PlacedExtent> pieces = WithoutLost(placed, lost);
      if (pieces.empty()) return Status::Ok();
      edit_.Remove(key);
      for (const PlacedExtent& piece : pieces) {
        edit_.Put(OverlayKey(inode, piece.offset), piece.extent.Encode());
        if (piece.extent.kind == OverlayExtent::Kind::kHole)
          lost_.push_back({inode, piece.offset, piece.extent.length});
      }
      return Status::Ok();
    });
  }

  RepairSession& session_;
  CheckContext context_;
  MetadataEdit edit_;
  std::unique_ptr<ChunkFinder> finder_;
  std::unique_ptr<BaseFinder> bases_;
  std::unique_ptr<NodeFinder> nodes_;
  std::map<uint64_t, std::vector<LostRange>> found_;
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
