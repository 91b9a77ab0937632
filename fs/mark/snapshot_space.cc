#include "fs/mark/snapshot_space.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/mark/node_levels.h"
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

  // The payload of NodeLevels.
  uint64_t Pack() const { return uint64_t{first} << 32 | last; }
  static Span Unpack(uint64_t packed) {
    return {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
  }
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

class SpaceMeasurement {
 public:
  SpaceMeasurement(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                   const std::vector<SnapshotBounds>& snapshots,
                   const SnapshotSpaceOptions& options)
      : env_(env),
        metadata_(metadata),
        snapshots_(snapshots),
        options_(options),
        pacer_(options.pace),
        levels_(env, Sorting(options.memory_bytes / kNodeShare), nodes, pacer_,
                [this](const ChunkName& name, uint64_t length, Levels::Kind, const Span& span) {
                  return AddChunk(name, length, span);
                }) {}

  Result<SnapshotSpaces> Run() {
    if (snapshots_.empty()) return std::move(spaces_);
    if (snapshots_.size() > ChunkReference::kMaxPlace)
      return Status(StatusCode::kUnsupported, "the store has too many snapshots");
    SILTFS_ASSIGN_OR_RETURN(chunks_,
                            RecordSorter<TwoWords>::Create(env_, Sorting(options_.memory_bytes)));
    SILTFS_RETURN_IF_ERROR(WalkRecords());
    SILTFS_RETURN_IF_ERROR(levels_.WalkNodes());
    spaces_.nodes = levels_.nodes_read();
    spaces_.spilled_bytes = levels_.spilled_bytes();
    SILTFS_RETURN_IF_ERROR(AddOthers());
    SILTFS_RETURN_IF_ERROR(Count());
    return std::move(spaces_);
  }

 private:
  using Levels = NodeLevels<Span>;

  ReferenceSorterOptions Sorting(size_t memory_bytes) const {
    return {.directory = options_.spill_directory,
            .memory_bytes = memory_bytes,
            .minimum_free_bytes = options_.minimum_free_bytes,
            .unnamed_files = true};
  }

  // --- References

  Status AddChunk(const ChunkName& name, uint64_t length, const Span& span) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    return chunks_->Add(ChunkReference::Encode(name, length, span));
  }

  // --- Records

  Status WalkRecords() {
    SILTFS_RETURN_IF_ERROR(
        WalkTable(Table::kInode, [this](std::string_view value, const Span& span) -> Status {
          SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
          return levels_.AddRecipe(record.recipe, span);
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
  const std::vector<SnapshotBounds>& snapshots_;
  const SnapshotSpaceOptions& options_;
  Pacer pacer_;
  std::unique_ptr<RecordSorter<TwoWords>> chunks_;
  NodeLevels<Span> levels_;
  SnapshotSpaces spaces_;
};

}  // namespace

Result<SnapshotSpaces> MeasureSnapshots(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                        const std::vector<SnapshotBounds>& snapshots,
                                        const SnapshotSpaceOptions& options) {
  return SpaceMeasurement(env, metadata, nodes, snapshots, options).Run();
}

}  // namespace siltfs
