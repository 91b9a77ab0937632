#include "fs/check/content_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/check/file_damages.h"
#include "fs/check/node_finder.h"
#include "fs/check/segment_check_run.h"
#include "fs/mark/node_set.h"
#include "fs/mark/subtree_set.h"
#include "fs/open/store_layout.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/table_cursor.h"
#include "fs/segments/chunk_verifier.h"
#include "fs/versions/version_walk.h"

namespace siltfs {
namespace {

constexpr size_t kBatch = 4096;
// Leaves with losses are reported entry by entry until there have been this many. A leaf counts
// once for each place in a file that refers to it. After that, only the first leaf with losses of
// each file is reported entry by entry. Each other subtree with losses is reported as one
// range.
constexpr uint64_t kMostNamedLeaves = uint64_t{1} << 12;

// A reference of a file to a chunk.
struct Reference {
  ChunkName name;
  uint32_t length = 0;
  FileVersion file = {};
  uint64_t offset = 0;   // in the file
  uint64_t covers = 0;   // bytes of the file
  bool damaged = false;  // the copy that the index points to cannot be read
  // The index does not point to the chunk. The next mount adds the entry if it replays a block with
  // the chunk.
  bool not_indexed = false;
  // The key (SubtreeSet::KeyOf) of the leaf with the reference; unset if the reference is in an
  // inode or an overlay.
  std::optional<ChunkName> leaf = {};
};

Reference ReferenceOf(const RecipeEntry& entry, const FileVersion& file, uint64_t offset,
                      std::optional<ChunkName> leaf = {}) {
  return {.name = entry.name,
          .length = static_cast<uint32_t>(entry.length),
          .file = file,
          .offset = offset,
          .covers = entry.length,
          .leaf = leaf};
}

bool ByChunk(const Reference& a, const Reference& b) {
  return a.name != b.name ? a.name < b.name : a.length < b.length;
}

// A first walk over all files enters every node once, however many places refer to the node. If a
// node, or a chunk under a node, is lost, there is a second walk over all files. The second walk
// enters only nodes that lead to a loss, and reports every place in a file that refers to a loss.
class ContentCheck {
 public:
  ContentCheck(CheckContext& context, ChunkFinder& finder, BaseFinder& bases,
               const KvSnapshot& snapshot, ChunkNamer namer)
      : context_(context),
        finder_(finder),
        bases_(bases),
        snapshot_(snapshot),
        nodes_(context, finder),
        verifier_(std::move(namer), context.superblock.tag_secret),
        files_(context.report().files) {}

  Status Run() {
    SILTFS_RETURN_IF_ERROR(ForEachFile(
        [this](const FileVersion& file, const Recipe& recipe) { return WalkFile(file, recipe); }));
    SILTFS_RETURN_IF_ERROR(Overlays());
    SILTFS_RETURN_IF_ERROR(ResolveBatch());
    SILTFS_RETURN_IF_ERROR(SearchSegments());
    if (any_lost_) SILTFS_RETURN_IF_ERROR(NameLosses());
    context_.Count([this](CheckReport& report) {
      report.recipe_nodes = node_count_;
      report.chunks_referenced = references_;
    });
    return damages_.Report(context_, snapshot_);
  }

 private:
  using VisitFile = std::function<Status(const FileVersion& file, const Recipe& recipe)>;

  // Visits all files, and then the versions of files that snapshots show.
  Status ForEachFile(const VisitFile& visit);
  Status VisitRecord(const FileVersion& file, std::string_view value, const VisitFile& visit,
                     uint64_t& done);
  Status Overlays();
  Status AddExtent(const FileVersion& file, uint64_t offset, std::string_view value);
  // The first walk: enters only nodes that it has not entered before, in this file or another.
  Status WalkFile(const FileVersion& file, const Recipe& recipe);
  // The second walk: enters only nodes that lead to a loss.
  Status NameLosses();
  Status NameLossesOf(const FileVersion& file, const Recipe& recipe);
  Result<bool> LeadsToLoss(const RecipeChild& child, uint8_t level);
  void LoseNode(const FileVersion& file, const RecipeChild& node, uint64_t offset,
                const Status& why) {
    Lose(RangeIn(file, offset, node.covered_bytes), "recipe-node",
         fmt::format("{} bytes cannot be read, because recipe node {} cannot be read: {}",
                     node.covered_bytes, node.name.ToHex(), why.ToString()));
  }
  Status Add(const Reference& reference);
  // Looks the batch up in the index.
  Status ResolveBatch();
  // Searches the segments for chunks that the index did not find, or of which it found only a
  // damaged copy.
  Status SearchSegments();
  // Whether the copy of the chunk at this location is undamaged. Called if some copy is damaged.
  bool IsWholeAt(const Location& location, const ChunkRecord& record);
  bool IsWholeAtIndex(const Location& location, const ChunkRecord& record);
  void Lose(const LostRange& range, const char* code, std::string message);
  static LostRange RangeIn(const FileVersion& file, uint64_t offset, uint64_t length) {
    return {file.inode, offset, length, file.snapshot};
  }
  void Lose(const Reference& reference, const char* code, std::string message) {
    if (reference.leaf && !naming_) {
      any_lost_ = true;
      lossy_.Insert(*reference.leaf);
      return;
    }
    Lose(RangeIn(reference.file, reference.offset, reference.covers), code, std::move(message));
  }

  CheckContext& context_;
  ChunkFinder& finder_;
  BaseFinder& bases_;
  const KvSnapshot& snapshot_;
  NodeFinder nodes_;
  ChunkVerifier verifier_;
  FileDamages damages_;
  // The results of IsWholeAtIndex: for a bounded number of chunks with a damaged copy, whether the
  // copy that the index points to is undamaged.
  std::unordered_map<ChunkName, bool> whole_at_index_;
  SubtreeSet walked_;
  NodeSet lossy_{NodeSet::kWholeNames};  // keys (SubtreeSet::KeyOf) of nodes that lead to a loss
  SubtreeSet whole_;                     // nodes without losses, except leaves
  bool any_lost_ = false;                // a node, or a chunk under a node, is lost
  bool naming_ = false;
  uint64_t named_leaves_ = 0;
  std::vector<Reference> batch_;
  std::vector<Reference> unresolved_;
  const uint64_t files_;  // without versions
  uint64_t references_ = 0;
  uint64_t node_count_ = 0;
};

Status ContentCheck::ForEachFile(const VisitFile& visit) {
  uint64_t done = 0;
  TableCursor inodes(snapshot_, Table::kInode);
  for (; inodes.inode() != TableCursor::kEnd; inodes.Next())
    SILTFS_RETURN_IF_ERROR(VisitRecord({inodes.inode(), 0}, inodes.value(), visit, done));
  SILTFS_RETURN_IF_ERROR(inodes.status());
  const KeyRange range = RangeOf(Table::kInode);
  return ForEachVersion(
      snapshot_, range.begin, range.end,
      [&](const VersionKeyParts& version, std::string_view value) -> Status {
        const auto inode = ParseInodeKey(Table::kInode, version.key);
        if (!inode) return Status::Ok();  // already reported
        return VisitRecord({*inode, version.snapshot}, value, visit, done);
      },
      MalformedVersions::kSkip);
}

Status ContentCheck::VisitRecord(const FileVersion& file, std::string_view value,
                                 const VisitFile& visit, uint64_t& done) {
  const auto record = InodeRecord::Decode(value);
  if (!record.ok() || !record->IsRegular()) return Status::Ok();  // already reported
  ++done;
  context_.Progress({.phase = "contents", .done = done, .total = std::max(files_, done)});
  SILTFS_RETURN_IF_ERROR(visit(file, record->recipe));
  return context_.Continue();
}

Status ContentCheck::WalkFile(const FileVersion& file, const Recipe& recipe) {
  std::optional<ChunkName> leaf;
  RecipeVisitor visitor;
  visitor.node = [&](const RecipeChild& child, uint8_t level, uint64_t) {
    const ChunkName key = SubtreeSet::KeyOf(child, level);
    if (!walked_.Insert(key, level)) {
      references_ += child.chunk_count;
      return false;
    }
    ++node_count_;
    if (level == 0) leaf = key;
    return true;
  };
  visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
    if (entry.is_hole()) return Status::Ok();
    return Add(ReferenceOf(entry, file, offset, leaf));
  };
  visitor.damaged = [&](const RecipeChild& node, uint8_t level, uint64_t, Status why) {
    if (!IsDamage(why)) return why;
    why.IgnoreError("the second walk reports it");
    any_lost_ = true;
    lossy_.Insert(SubtreeSet::KeyOf(node, level));
    return Status::Ok();
  };
  return WalkRecipe(nodes_, recipe, visitor);
}

Status ContentCheck::NameLosses() {
  naming_ = true;
  const uint64_t references = references_;
  SILTFS_RETURN_IF_ERROR(ForEachFile([this](const FileVersion& file, const Recipe& recipe) {
    return NameLossesOf(file, recipe);
  }));
  SILTFS_RETURN_IF_ERROR(ResolveBatch());
  SILTFS_RETURN_IF_ERROR(SearchSegments());
  references_ = references;  // the second walk has counted some references again
  return Status::Ok();
}

Status ContentCheck::NameLossesOf(const FileVersion& file, const Recipe& recipe) {
  if (recipe.height == 0) return Status::Ok();
  bool named = false;
  Status failure;
  RecipeVisitor visitor;
  visitor.node = [&](const RecipeChild& child, uint8_t level, uint64_t offset) {
    if (!failure.ok()) return false;
    const Result<bool> lossy = LeadsToLoss(child, level);
    if (!lossy.ok()) failure = lossy.status();
    if (!lossy.ok() || !*lossy) return false;
    if (named && named_leaves_ >= kMostNamedLeaves) {
      Lose(RangeIn(file, offset, child.covered_bytes), "chunk-missing",
           fmt::format("chunks in a range of {} bytes are lost", child.covered_bytes));
      return false;
    }
    if (level == 0) {
      named = true;
      ++named_leaves_;
    }
    return true;
  };
  visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
    if (entry.is_hole()) return Status::Ok();
    return Add(ReferenceOf(entry, file, offset));
  };
  visitor.damaged = [&](const RecipeChild& node, uint8_t, uint64_t offset, Status why) {
    if (!IsDamage(why)) return why;
    named = true;
    ++named_leaves_;
    LoseNode(file, node, offset, why);
    return Status::Ok();
  };
  Status walked = WalkRecipe(nodes_, recipe, visitor);
  if (!failure.ok()) return failure;
  return walked;
}

// The recursion depth is a recipe's height, at most 8.
Result<bool> ContentCheck::LeadsToLoss(const RecipeChild& child, uint8_t level) {
  const ChunkName key = SubtreeSet::KeyOf(child, level);
  if (lossy_.Contains(key)) return true;
  if (level == 0 || whole_.Contains(child, level)) return false;
  SILTFS_ASSIGN_OR_RETURN(const RecipeNode node, ReadNode(nodes_, child, level));
  for (const RecipeChild& below : node.children) {
    SILTFS_ASSIGN_OR_RETURN(const bool lossy, LeadsToLoss(below, level - 1));
    if (!lossy) continue;
    lossy_.Insert(key);
    return true;
  }
  whole_.Insert(key, level);
  return false;
}

Status ContentCheck::Overlays() {
  TableCursor extents(snapshot_, Table::kOverlay);
  for (; extents.inode() != TableCursor::kEnd; extents.Next()) {
    uint64_t offset = 0;
    if (!extents.Number(offset)) continue;  // already reported
    SILTFS_RETURN_IF_ERROR(AddExtent({extents.inode(), 0}, offset, extents.value()));
  }
  SILTFS_RETURN_IF_ERROR(extents.status());
  const KeyRange range = RangeOf(Table::kOverlay);
  return ForEachVersion(
      snapshot_, range.begin, range.end,
      [&](const VersionKeyParts& version, std::string_view value) -> Status {
        const auto place = ParseNumberedKey(Table::kOverlay, version.key);
        if (!place) return Status::Ok();  // already reported
        return AddExtent({place->inode, version.snapshot}, place->number, value);
      },
      MalformedVersions::kSkip);
}

Status ContentCheck::AddExtent(const FileVersion& file, uint64_t offset, std::string_view value) {
  const auto extent = OverlayExtent::Decode(value);
  if (!extent.ok()) return Status::Ok();  // already reported
  for (const ChunkSlice& slice : extent->slices) {
    SILTFS_RETURN_IF_ERROR(Add({.name = slice.name,
                                .length = slice.chunk_length,
                                .file = file,
                                .offset = offset,
                                .covers = slice.length}));
    offset += slice.length;
  }
  return context_.Continue();
}

void ContentCheck::Lose(const LostRange& range, const char* code, std::string message) {
  damages_.Add({range.inode, range.snapshot}, code, range.offset, std::move(message));
  if (context_.options.on_lost) context_.options.on_lost(range);
}

Status ContentCheck::Add(const Reference& reference) {
  ++references_;
  batch_.push_back(reference);
  if (batch_.size() < kBatch) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(context_.Continue());
  return ResolveBatch();
}

Status ContentCheck::ResolveBatch() {
  std::vector<ChunkName> names;
  for (const Reference& reference : batch_) names.push_back(reference.name);
  std::vector<std::optional<Location>> locations(names.size());
  if (context_.index) context_.index->Get(names, locations).IgnoreError("segments are searched");
  // Sort by location, so that each block's head is read once.
  std::vector<size_t> order(batch_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&locations](size_t a, size_t b) { return locations[a] < locations[b]; });
  for (const size_t i : order) {
    Reference& reference = batch_[i];
    bool shared = false;  // the entry is that of another chunk
    if (locations[i]) {
      const auto record = finder_.RecordAt(*locations[i]);
      reference.damaged = !record.ok() && !record.status().Is(StatusCode::kNotFound);
      if (record.ok() && *record && (*record)->name == reference.name &&
          (*record)->length == reference.length) {
        if (!context_.IsDamaged(reference.name) || IsWholeAtIndex(*locations[i], **record))
          continue;
        reference.damaged = true;
        unresolved_.push_back(reference);
        continue;
      }
      shared = record.ok() && *record && context_.ShareEntry((*record)->name, reference.name);
    }
    reference.not_indexed = !shared;
    unresolved_.push_back(reference);
  }
  batch_.clear();
  if (unresolved_.size() < context_.options.unresolved_references) return Status::Ok();
  return SearchSegments();
}

bool ContentCheck::IsWholeAt(const Location& location, const ChunkRecord& record) {
  const auto bytes = finder_.ReadAt(location, &bases_);
  if (bytes.ok()) return verifier_.Verify(record, **bytes) == ChunkVerifier::Verdict::kRight;
  bytes.status().IgnoreError("SegmentWalk has reported it");
  return false;
}

bool ContentCheck::IsWholeAtIndex(const Location& location, const ChunkRecord& record) {
  const auto [known, is_new] = whole_at_index_.try_emplace(record.name);
  if (is_new) known->second = IsWholeAt(location, record);
  return known->second;
}

Status ContentCheck::SearchSegments() {
  if (unresolved_.empty()) return Status::Ok();
  std::sort(unresolved_.begin(), unresolved_.end(), ByChunk);
  std::vector<bool> found(unresolved_.size());
  std::vector<bool> replayed(unresolved_.size());
  SILTFS_RETURN_IF_ERROR(
      ForEachBlock(context_, finder_, std::nullopt, [&](const BlockHead& head, uint32_t offset) {
        const bool is_replayed = context_.index && context_.IsReplayed(head);
        uint32_t ordinal = head.first_ordinal;
        for (const ChunkRecord& chunk : head.records) {
          const Location location{head.segment, ordinal++, offset};
          const Reference wanted{.name = chunk.name, .length = chunk.length};
          auto at = std::lower_bound(unresolved_.begin(), unresolved_.end(), wanted, ByChunk);
          if (at == unresolved_.end() || at->name != chunk.name) continue;
          const auto first = static_cast<size_t>(at - unresolved_.begin());
          if (found[first] && (replayed[first] || !is_replayed)) continue;
          if (context_.IsDamaged(chunk.name) && !IsWholeAt(location, chunk)) continue;
          for (; at != unresolved_.end() && at->name == chunk.name && at->length == chunk.length;
               ++at) {
            found[static_cast<size_t>(at - unresolved_.begin())] = true;
            if (is_replayed) replayed[static_cast<size_t>(at - unresolved_.begin())] = true;
          }
        }
        return Status::Ok();
      }));
  for (size_t i = 0; i < unresolved_.size(); ++i) {
    const Reference& reference = unresolved_[i];
    if (reference.not_indexed && !replayed[i]) context_.NoteReferenceNotIndexed();
    if (found[i]) continue;
    const bool damaged = context_.IsDamaged(reference.name) || reference.damaged;
    Lose(reference, damaged ? "chunk-damaged" : "chunk-missing",
         fmt::format("the chunk {} of {} bytes {}", reference.name.ToHex(), reference.length,
                     damaged ? "is damaged" : "is in no segment"));
  }
  unresolved_.clear();
  return Status::Ok();
}

}  // namespace

Status CheckContents(CheckContext& context, ChunkFinder& finder, BaseFinder& bases) {
  if (!context.metadata) {
    context.ReportHeldBack(/*knows=*/false);
    return Status::Ok();
  }
  const auto snapshot = context.metadata->Snapshot();
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(context.superblock.uuid.bytes));
  const Status checked = ContentCheck(context, finder, bases, *snapshot, std::move(namer)).Run();
  context.ReportHeldBack(/*knows=*/checked.ok());
  if (checked.ok() || !IsDamage(checked)) return checked;
  context.Report("metadata-read", checked);
  return Status::Ok();
}

}  // namespace siltfs
