#include "fs/mark/snapshot_space.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/records/inode_record.h"
#include "fs/records/lineage.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/versions/shown_values.h"

namespace siltfs {
namespace {

// The memory of the sorters for nodes, as a share of that for chunks: there are some 128 chunks for
// each node.
constexpr size_t kNodeShare = 8;

// The first and the last snapshot that show something.
struct Span {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;

  void Unite(const Span& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

// A reference to a chunk: the beginning of its name; the span and the length, packed.
class ChunkReference {
 public:
  static constexpr unsigned kPlaceBits = 20;
  static constexpr unsigned kLengthBits = 24;
  static constexpr uint64_t kMaxPlace = (uint64_t{1} << kPlaceBits) - 1;
  static constexpr uint64_t kMaxLength = (uint64_t{1} << kLengthBits) - 1;
  static_assert(2 * kPlaceBits + kLengthBits == 64);
  static_assert(RecipeEntry::kMaxChunkLength <= kMaxLength);
  static_assert(RecipeChild::kMaxNodeBytes <= kMaxLength);

  static TwoWords Encode(const ChunkName& name, uint64_t length, const Span& span) {
    return {name.Prefix64(), uint64_t{span.first} << (kPlaceBits + kLengthBits) |
                                 uint64_t{span.last} << kLengthBits | std::min(length, kMaxLength)};
  }
  static Span SpanOf(const TwoWords& record) {
    return {static_cast<uint32_t>(record[1] >> (kPlaceBits + kLengthBits)),
            static_cast<uint32_t>(record[1] >> kLengthBits & kMaxPlace)};
  }
  static uint64_t LengthOf(const TwoWords& record) { return record[1] & kMaxLength; }
};

// A reference to a node.
struct NodeReference {
  RecipeChild child;
  Span span;
  uint64_t order = 0;  // of the walk

  // For sorting by name: the name and the length of the node come first.
  EightWords ByName() const { return Encode(0, 7); }
  // For sorting by order.
  EightWords ByOrder() const { return Encode(1, 0); }
  static NodeReference FromByName(const EightWords& words) { return Decode(words, 0, 7); }
  static NodeReference FromByOrder(const EightWords& words) { return Decode(words, 1, 0); }

 private:
  // `at`: the word from which on all fields but the order lie.
  EightWords Encode(size_t at, size_t order_at) const {
    EightWords words{};
    auto* const bytes = reinterpret_cast<uint8_t*>(&words[at]);
    std::memcpy(bytes, child.name.bytes.data(), ChunkName::kSize);
    std::memcpy(bytes + ChunkName::kSize, &child.node_bytes, sizeof child.node_bytes);
    words[at + 3] = child.covered_bytes;
    words[at + 4] = child.chunk_count;
    words[at + 5] = child.hole_bytes;
    words[at + 6] = uint64_t{span.first} << 32 | span.last;
    words[order_at] = order;
    return words;
  }
  static NodeReference Decode(const EightWords& words, size_t at, size_t order_at) {
    NodeReference reference;
    RecipeChild& child = reference.child;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&words[at]);
    std::memcpy(child.name.bytes.data(), bytes, ChunkName::kSize);
    std::memcpy(&child.node_bytes, bytes + ChunkName::kSize, sizeof child.node_bytes);
    child.covered_bytes = words[at + 3];
    child.chunk_count = words[at + 4];
    child.hole_bytes = words[at + 5];
    reference.span = {static_cast<uint32_t>(words[at + 6] >> 32),
                      static_cast<uint32_t>(words[at + 6])};
    reference.order = words[order_at];
    return reference;
  }
};

class SpaceMeasurement {
 public:
  SpaceMeasurement(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                   const std::vector<SnapshotBounds>& snapshots,
                   const SnapshotSpaceOptions& options)
      : env_(env),
        metadata_(metadata),
        nodes_(nodes),
        snapshots_(snapshots),
        options_(options),
        pacer_(options.pace) {}

  Result<SnapshotSpaces> Run() {
    if (snapshots_.empty()) return std::move(spaces_);
    if (snapshots_.size() > ChunkReference::kMaxPlace)
      return Status(StatusCode::kUnsupported, "the store has too many snapshots");
    SILTFS_ASSIGN_OR_RETURN(chunks_, MakeSorter<TwoWords>(options_.memory_bytes));
    SILTFS_RETURN_IF_ERROR(WalkRecords());
    for (size_t level = levels_.size(); level-- > 0;)
      SILTFS_RETURN_IF_ERROR(WalkNodes(static_cast<uint8_t>(level)));
    SILTFS_RETURN_IF_ERROR(AddOthers());
    SILTFS_RETURN_IF_ERROR(Count());
    return std::move(spaces_);
  }

 private:
  template <typename Record>
  Result<std::unique_ptr<RecordSorter<Record>>> MakeSorter(size_t memory_bytes) {
    return RecordSorter<Record>::Create(env_, {.directory = options_.spill_directory,
                                               .memory_bytes = memory_bytes,
                                               .minimum_free_bytes = options_.minimum_free_bytes,
                                               .unnamed_files = true});
  }
  Result<std::unique_ptr<RecordSorter<EightWords>>> MakeNodeSorter() {
    return MakeSorter<EightWords>(options_.memory_bytes / kNodeShare);
  }

  // --- References

  Status AddChunk(const ChunkName& name, uint64_t length, const Span& span) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    return chunks_->Add(ChunkReference::Encode(name, length, span));
  }

  // `level`: of the node.
  Status AddNode(const RecipeChild& child, uint8_t level, const Span& span) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    auto& sorter = levels_[level];
    if (sorter == nullptr) {
      SILTFS_ASSIGN_OR_RETURN(sorter, MakeNodeSorter());
    }
    return sorter->Add(NodeReference{child, span, next_order_++}.ByName());
  }

  // The items of a root or a node. `level`: their own.
  Status AddItems(uint8_t level, const std::vector<RecipeEntry>& entries,
                  const std::vector<RecipeChild>& children, const Span& span) {
    for (const RecipeEntry& entry : entries) {
      if (!entry.is_hole()) SILTFS_RETURN_IF_ERROR(AddChunk(entry.name, entry.length, span));
    }
    for (const RecipeChild& child : children)
      SILTFS_RETURN_IF_ERROR(AddNode(child, static_cast<uint8_t>(level - 1), span));
    return Status::Ok();
  }

  // --- Records

  Status WalkRecords() {
    SILTFS_RETURN_IF_ERROR(
        WalkTable(Table::kInode, [this](std::string_view value, const Span& span) -> Status {
          SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
          return AddItems(record.recipe.height, record.recipe.entries, record.recipe.children,
                          span);
        }));
    return WalkTable(Table::kOverlay, [this](std::string_view value, const Span& span) -> Status {
      SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
      for (const ChunkSlice& slice : extent.slices)
        SILTFS_RETURN_IF_ERROR(AddChunk(slice.name, slice.chunk_length, span));
      return Status::Ok();
    });
  }

  using AddValue = std::function<Status(std::string_view value, const Span& span)>;

  Status WalkTable(Table table, const AddValue& add) {
    SILTFS_ASSIGN_OR_RETURN(const Lineages lineages, ReadLineages(metadata_));
    SILTFS_RETURN_IF_ERROR(WalkLineage(table, kLiveLineage, add));
    for (const auto& [lineage, record] : lineages)
      SILTFS_RETURN_IF_ERROR(WalkLineage(table, lineage, add));
    return Status::Ok();
  }

  Status WalkLineage(Table table, LineageNumber lineage, const AddValue& add) {
    std::vector<SnapshotBounds> own;
    std::vector<uint32_t> places;  // of these snapshots among all
    for (size_t i = 0; i < snapshots_.size(); ++i) {
      if (snapshots_[i].lineage != lineage) continue;
      own.push_back(snapshots_[i]);
      places.push_back(static_cast<uint32_t>(i));
    }
    const auto live = static_cast<uint32_t>(snapshots_.size());
    // Only snapshots show the head of a lineage. What they do not show is being received.
    const bool shown_itself = lineage == kLiveLineage || own.empty();
    const KeyRange range = RangeOfLineage(table, lineage);
    return ForEachShownValue(
        metadata_, range.begin, range.end, own,
        [&](std::string_view key, std::string_view value, const ShownBy& shown) -> Status {
          SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
          const size_t last = shown.last < own.size() || shown_itself || shown.first == own.size()
                                  ? shown.last
                                  : own.size() - 1;
          const Span span = {shown.first < own.size() ? places[shown.first] : live,
                             last < own.size() ? places[last] : live};
          Status added = add(value, span);
          if (added.Is(StatusCode::kCorruption))
            return std::move(added).At(NameOfOwner(table, key));
          return added;
        });
  }

  // --- Nodes

  // Reads the nodes of a level, and adds the references in them. All references to these nodes must
  // have been added.
  Status WalkNodes(uint8_t level) {
    if (levels_[level] == nullptr) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const auto nodes, UniteNodes(*levels_[level]));
    spaces_.spilled_bytes += levels_[level]->spilled_bytes();
    levels_[level].reset();
    SILTFS_RETURN_IF_ERROR(nodes->Sort());
    while (!nodes->AtEnd()) {
      const NodeReference node = NodeReference::FromByOrder(nodes->record());
      SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kNodeWork));
      // The node itself is a chunk, too.
      SILTFS_RETURN_IF_ERROR(AddChunk(node.child.name, node.child.node_bytes, node.span));
      SILTFS_ASSIGN_OR_RETURN(const RecipeNode read, ReadNode(nodes_, node.child, level));
      SILTFS_RETURN_IF_ERROR(AddItems(level, read.entries, read.children, node.span));
      ++spaces_.nodes;
      SILTFS_RETURN_IF_ERROR(nodes->Next());
    }
    spaces_.spilled_bytes += nodes->spilled_bytes();
    return Status::Ok();
  }

  // Returns each node once, with all that its references say, in the order of the walk.
  Result<std::unique_ptr<RecordSorter<EightWords>>> UniteNodes(
      RecordSorter<EightWords>& references) {
    SILTFS_ASSIGN_OR_RETURN(auto nodes, MakeNodeSorter());
    SILTFS_RETURN_IF_ERROR(references.Sort());
    while (!references.AtEnd()) {
      NodeReference node = NodeReference::FromByName(references.record());
      SILTFS_RETURN_IF_ERROR(references.Next());
      while (!references.AtEnd()) {
        const NodeReference other = NodeReference::FromByName(references.record());
        if (other.child.name != node.child.name) break;
        SILTFS_RETURN_IF_ERROR(pacer_.Step());
        node.span.Unite(other.span);
        node.order = std::min(node.order, other.order);
        SILTFS_RETURN_IF_ERROR(references.Next());
      }
      SILTFS_RETURN_IF_ERROR(nodes->Add(node.ByOrder()));
    }
    return nodes;
  }

  // --- Results

  // What garbage collection keeps for other reasons is not freed, as if live files referred to it.
  Status AddOthers() {
    if (!options_.more) return Status::Ok();
    const auto live = static_cast<uint32_t>(snapshots_.size());
    return options_.more([&](const ChunkName& name) { return AddChunk(name, 0, {live, live}); });
  }

  Status Count() {
    spaces_.snapshots.resize(snapshots_.size());
    SILTFS_RETURN_IF_ERROR(chunks_->Sort());
    while (!chunks_->AtEnd()) {
      const uint64_t prefix = chunks_->record()[0];
      Span span;
      uint64_t length = 0;
      while (!chunks_->AtEnd() && chunks_->record()[0] == prefix) {
        SILTFS_RETURN_IF_ERROR(pacer_.Step());
        span.Unite(ChunkReference::SpanOf(chunks_->record()));
        length = std::max(length, ChunkReference::LengthOf(chunks_->record()));
        SILTFS_RETURN_IF_ERROR(chunks_->Next());
      }
      if (span.first == snapshots_.size()) continue;  // only the live files have it
      SnapshotBytes& first = spaces_.snapshots[span.first];
      first.new_bytes += length;
      if (span.last == span.first) first.freed_bytes += length;
    }
    spaces_.spilled_bytes += chunks_->spilled_bytes();
    return Status::Ok();
  }

  Env& env_;
  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  const std::vector<SnapshotBounds>& snapshots_;
  const SnapshotSpaceOptions& options_;
  Pacer pacer_;
  std::unique_ptr<RecordSorter<TwoWords>> chunks_;
  // The references to the nodes of each level; null without any.
  std::array<std::unique_ptr<RecordSorter<EightWords>>, Recipe::kMaxHeight> levels_;
  uint64_t next_order_ = 0;
  SnapshotSpaces spaces_;
};

}  // namespace

Result<SnapshotSpaces> MeasureSnapshots(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                        const std::vector<SnapshotBounds>& snapshots,
                                        const SnapshotSpaceOptions& options) {
  return SpaceMeasurement(env, metadata, nodes, snapshots, options).Run();
}

}  // namespace siltfs
