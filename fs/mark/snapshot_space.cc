#include "fs/mark/snapshot_space.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/mark/level_walk.h"
#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/mark/shown_records.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The memory for nodes, as a share of that for chunks: there are some 128 chunks for each node.
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

// A span as a mark of LevelWalk.
uint64_t MarkOf(const Span& span) { return uint64_t{span.first} << 32 | span.last; }
Span SpanOf(uint64_t mark) {
  return {static_cast<uint32_t>(mark >> 32), static_cast<uint32_t>(mark)};
}

bool UniteSpans(const RecipeChild&, uint64_t& mark, uint64_t other) {
  Span span = SpanOf(mark);
  span.Unite(SpanOf(other));
  mark = MarkOf(span);
  return true;
}

class SpaceMeasurement {
 public:
  SpaceMeasurement(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                   const std::vector<SnapshotBounds>& snapshots,
                   const SnapshotSpaceOptions& options)
      : env_(env),
        metadata_(metadata),
        snapshots_(snapshots),
        options_(options),
        pacer_(options.pace, options.progress),
        recipes_(env, nodes, RecipeOptions(), pacer_) {}

  Result<SnapshotSpaces> Run() {
    if (snapshots_.empty()) return std::move(spaces_);
    if (snapshots_.size() > ChunkReference::kMaxPlace)
      return Status(StatusCode::kUnsupported, "the store has too many snapshots");
    SILTFS_ASSIGN_OR_RETURN(chunks_, RecordSorter<TwoWords>::Create(
                                         env_, {.directory = options_.spill_directory,
                                                .memory_bytes = options_.memory_bytes,
                                                .minimum_free_bytes = options_.minimum_free_bytes,
                                                .unnamed_files = true}));
    SILTFS_RETURN_IF_ERROR(WalkRecords());
    SILTFS_RETURN_IF_ERROR(recipes_.Finish());
    spaces_.nodes = recipes_.nodes_read();
    spaces_.spilled_bytes = recipes_.spilled_bytes();
    SILTFS_RETURN_IF_ERROR(AddOthers());
    SILTFS_RETURN_IF_ERROR(Count());
    return std::move(spaces_);
  }

 private:
  LevelWalkOptions RecipeOptions() {
    // Nodes are chunks, too.
    const auto visit = [this](const ChunkName& name, uint64_t length, uint64_t mark) {
      return chunks_->Add(ChunkReference::Encode(name, length, SpanOf(mark)));
    };
    return {.spill_directory = options_.spill_directory,
            .memory_bytes = options_.memory_bytes / kNodeShare,
            .minimum_free_bytes = options_.minimum_free_bytes,
            .unite = UniteSpans,
            .visit = visit,
            .visit_node = visit};
  }

  static Span ToSpan(const ShownBy& shown) {
    return {static_cast<uint32_t>(shown.first), static_cast<uint32_t>(shown.last)};
  }

  Status WalkRecords() {
    if (options_.progress != nullptr) options_.progress->Begin("files");
    SILTFS_RETURN_IF_ERROR(ForEachShownRecord(
        metadata_, Table::kInode, snapshots_, pacer_,
        [this](std::string_view, std::string_view value, const ShownBy& shown) -> Status {
          pacer_.CountFile();
          SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
          return recipes_.Add(record.recipe, MarkOf(ToSpan(shown)));
        }));
    return ForEachShownRecord(
        metadata_, Table::kOverlay, snapshots_, pacer_,
        [this](std::string_view, std::string_view value, const ShownBy& shown) -> Status {
          SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
          for (const ChunkSlice& slice : extent.slices)
            SILTFS_RETURN_IF_ERROR(AddChunk(slice.name, slice.chunk_length, ToSpan(shown)));
          return Status::Ok();
        });
  }

  Status AddChunk(const ChunkName& name, uint64_t length, const Span& span) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    return chunks_->Add(ChunkReference::Encode(name, length, span));
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
  LevelWalk recipes_;
  std::unique_ptr<RecordSorter<TwoWords>> chunks_;
  SnapshotSpaces spaces_;
};

}  // namespace

Result<SnapshotSpaces> MeasureSnapshots(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                        const std::vector<SnapshotBounds>& snapshots,
                                        const SnapshotSpaceOptions& options) {
  return SpaceMeasurement(env, metadata, nodes, snapshots, options).Run();
}

}  // namespace siltfs
