#include "fs/mark/chunk_survey.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/mark/level_walk.h"
#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/records/inode_record.h"
#include "fs/records/lineage.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/versions/version_walk.h"
#include "store/segment/segment_format.h"

namespace siltfs {
namespace {

// The memory of the sorters for nodes, as a share of that for chunks: there are some 128 chunks for
// each node.
constexpr size_t kNodeShare = 8;

// How many references of present files lead here; 0: only snapshots do.
struct References {
  uint64_t count = 0;

  void Unite(const References& other) {
    count = count > UINT64_MAX - other.count ? UINT64_MAX : count + other.count;
  }
};

// The marks of the walk through recipes are the numbers of references.
bool UniteReferences(const RecipeChild&, uint64_t& mark, uint64_t other) {
  References united{mark};
  united.Unite({other});
  mark = united.count;
  return true;
}

enum class Kind : uint8_t { kChunk, kNode, kBase };

// A sampled reference. The words: the place in the index's order; the number of references that
// this one stands for; length, kind and number of the record. The number keeps apart equal
// references, because the sorter drops repeated records.
class SampledReference {
 public:
  static constexpr unsigned kKindBits = 2;
  static constexpr unsigned kNumberBits = 38;
  static constexpr unsigned kLengthBits = 24;
  static_assert(kKindBits + kNumberBits + kLengthBits == 64);
  static constexpr uint64_t kMaxLength = (uint64_t{1} << kLengthBits) - 1;
  static_assert(RecipeEntry::kMaxChunkLength <= kMaxLength);

  static ThreeWords Encode(uint64_t order, const References& references, uint64_t length, Kind kind,
                           uint64_t number) {
    return {order, references.count,
            std::min(length, kMaxLength) << (kKindBits + kNumberBits) |
                static_cast<uint64_t>(kind) << kNumberBits |
                (number & ((uint64_t{1} << kNumberBits) - 1))};
  }
  static uint64_t LengthOf(const ThreeWords& record) {
    return record[2] >> (kKindBits + kNumberBits);
  }
  static Kind KindOf(const ThreeWords& record) {
    return static_cast<Kind>(record[2] >> kNumberBits & ((1u << kKindBits) - 1));
  }
};

// All references to one chunk.
struct ReferencedChunk {
  uint64_t order = 0;
  References references;
  uint64_t length = 0;
  bool is_chunk = false;  // of a file's content
  bool is_node = false;
  bool indexed = false;
};

unsigned SampleBits(uint64_t references, uint64_t most) {
  unsigned bits = 0;
  while (bits < 32 && references >> bits > std::max<uint64_t>(most, 1)) ++bits;
  return bits;
}

class Survey {
 public:
  Survey(Env& env, const KvSnapshot& metadata, NodeStore& nodes, ChunkIndex& index,
         const SegmentRecords& segments, const ChunkSurveyOptions& options)
      : env_(env),
        metadata_(metadata),
        index_(index),
        options_(options),
        pace_([this] {
          return options_.on_progress ? options_.on_progress(progress_) : Status::Ok();
        }),
        pacer_(pace_),
        recipes_(env, nodes, RecipeOptions(), pacer_) {
    result_.sample_bits = SampleBits(options.expected_references, options.most_references);
    result_.segments.reserve(segments.size());
    for (const auto& [id, record] : segments) {
      result_.segments.push_back(
          {.id = id,
           .nodes = record.kind == static_cast<uint8_t>(SegmentKind::kRecipeNodes),
           .sealed = record.sealed,
           .recompressed = record.recompressed,
           .bytes = record.length,
           .chunks = record.chunks});
    }
  }

  Result<ChunkSurvey> Run() {
    SILTFS_ASSIGN_OR_RETURN(sorter_,
                            RecordSorter<ThreeWords>::Create(env_, Sorting(options_.memory_bytes)));
    SILTFS_RETURN_IF_ERROR(Begin({.step = 1, .name = "files", .total = options_.expected_inodes}));
    SILTFS_RETURN_IF_ERROR(WalkInodes());
    SILTFS_RETURN_IF_ERROR(WalkOverlays());
    SILTFS_RETURN_IF_ERROR(Begin({.step = 2, .name = "recipes"}));
    SILTFS_RETURN_IF_ERROR(recipes_.Finish());
    SILTFS_RETURN_IF_ERROR(AddBases());
    SILTFS_RETURN_IF_ERROR(Begin(
        {.step = 3, .name = "chunks", .total = index_.stats().entries >> result_.sample_bits}));
    SILTFS_RETURN_IF_ERROR(sorter_->Sort());
    SILTFS_RETURN_IF_ERROR(MergeWithIndex());
    result_.nodes_read = recipes_.nodes_read();
    result_.spilled_bytes = recipes_.spilled_bytes() + sorter_->spilled_bytes();
    return std::move(result_);
  }

 private:
  static constexpr References kFromFiles{1};
  static constexpr References kFromSnapshots{0};

  ReferenceSorterOptions Sorting(size_t memory_bytes) const {
    return {.directory = options_.spill_directory,
            .memory_bytes = memory_bytes,
            .minimum_free_bytes = options_.minimum_free_bytes,
            .unnamed_files = true};
  }
  LevelWalkOptions RecipeOptions() {
    return {.spill_directory = options_.spill_directory,
            .memory_bytes = options_.memory_bytes / kNodeShare,
            .minimum_free_bytes = options_.minimum_free_bytes,
            .unite = UniteReferences,
            .visit = [this](const ChunkName& name, uint64_t length,
                            uint64_t mark) { return Add(name, length, Kind::kChunk, {mark}); },
            .visit_node =
                [this](const ChunkName& name, uint64_t length, uint64_t mark) {
                  ++progress_.done;
                  return Add(name, length, Kind::kNode, {mark});
                }};
  }

  Status Begin(const SurveyProgress& step) {
    progress_ = step;
    return pace_();
  }

  bool IsSampled(uint64_t order) const {
    return result_.sample_bits == 0 || order >> (64 - result_.sample_bits) == 0;
  }

  // --- References

  Status Add(const ChunkName& name, uint64_t length, Kind kind, const References& references) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    const uint64_t order = index_.OrderOf(name);
    if (!IsSampled(order)) return Status::Ok();
    return sorter_->Add(SampledReference::Encode(order, references, length, kind, next_number_++));
  }

  using AddValue = std::function<Status(std::string_view value, const References& references)>;

  // Visits the present values of the table, then those that only snapshots show. Received snapshots
  // are in the same table, with larger keys.
  Status WalkTable(Table table, const AddValue& add) {
    const KeyRange range = RangeOf(table);
    const std::string live_end = RangeOfLineage(table, kLiveLineage).end;
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const bool live = iterator->key() < live_end;
      if (table == Table::kInode && live) ++progress_.done;
      Status added = add(iterator->value(), live ? kFromFiles : kFromSnapshots);
      if (!added.ok()) return std::move(added).At(NameOfOwner(table, iterator->key()));
      SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return ForEachVersion(
        metadata_, range.begin, range.end,
        [&](const VersionKeyParts& version, std::string_view value) -> Status {
          Status added = add(value, kFromSnapshots);
          if (!added.ok())
            return std::move(added).At(NameOfOwner(table, version.key) + " in a snapshot");
          return pacer_.Step(Pacer::kRecordWork);
        });
  }

  Status WalkInodes() {
    return WalkTable(
        Table::kInode, [this](std::string_view value, const References& references) -> Status {
          SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
          return recipes_.Add(record.recipe, references.count);
        });
  }

  Status WalkOverlays() {
    return WalkTable(
        Table::kOverlay, [this](std::string_view value, const References& references) -> Status {
          SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
          for (const ChunkSlice& slice : extent.slices)
            SILTFS_RETURN_IF_ERROR(Add(slice.name, slice.chunk_length, Kind::kChunk, references));
          return Status::Ok();
        });
  }

  Status AddBases() {
    if (!options_.more) return Status::Ok();
    return options_.more(
        [this](const ChunkName& name) { return Add(name, 0, Kind::kBase, kFromSnapshots); });
  }

  // --- Results

  Status MergeWithIndex() {
    SILTFS_RETURN_IF_ERROR(NextChunk());
    bool sample_ends = false;
    Status merged = index_.ForEach([&](const OrderedEntry& entry) -> Status {
      if (!IsSampled(entry.order)) {
        sample_ends = true;
        return {StatusCode::kInterrupted, "the sample ends here"};
      }
      ++progress_.done;
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      return CountEntry(entry);
    });
    if (sample_ends) {
      merged.IgnoreError("the rest of the index is not read");
    } else {
      SILTFS_RETURN_IF_ERROR(merged);
    }
    while (has_chunk_) SILTFS_RETURN_IF_ERROR(CountChunk());
    return Status::Ok();
  }

  Status CountEntry(const OrderedEntry& entry) {
    const SegmentId id = entry.location.segment;
    if (options_.gone && options_.gone(id)) return Status::Ok();
    while (has_chunk_ && chunk_.order < entry.order) SILTFS_RETURN_IF_ERROR(CountChunk());
    const bool live = has_chunk_ && chunk_.order == entry.order;
    if (live) chunk_.indexed = true;
    const auto segment = std::ranges::lower_bound(result_.segments, id, {}, &SegmentUse::id);
    if (segment == result_.segments.end() || segment->id != id) return Status::Ok();
    ++segment->indexed;
    if (live) ++segment->live;
    return Status::Ok();
  }

  // Counts the chunk, and moves to the next one.
  Status CountChunk() {
    if (!chunk_.indexed) ++result_.not_indexed;
    if (chunk_.is_node) {
      ++result_.nodes.chunks;
      result_.nodes.bytes += chunk_.length;
    } else if (chunk_.is_chunk && chunk_.references.count == 0) {
      ++result_.snapshots.chunks;
      result_.snapshots.bytes += chunk_.length;
    } else if (chunk_.is_chunk) {
      result_.references += chunk_.references.count;
      for (ChunkClass* const counted :
           {&result_.files, &result_.lengths[LengthClassOf(chunk_.length)],
            &result_.shared[ReferenceClassOf(chunk_.references.count)]}) {
        ++counted->chunks;
        counted->bytes += chunk_.length;
      }
    }
    return NextChunk();
  }

  Status NextChunk() {
    chunk_ = {};
    has_chunk_ = !sorter_->AtEnd();
    if (!has_chunk_) return Status::Ok();
    chunk_.order = sorter_->record()[0];
    while (!sorter_->AtEnd() && sorter_->record()[0] == chunk_.order) {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      const ThreeWords& record = sorter_->record();
      chunk_.references.Unite({record[1]});
      chunk_.length = std::max(chunk_.length, SampledReference::LengthOf(record));
      const Kind kind = SampledReference::KindOf(record);
      chunk_.is_chunk = chunk_.is_chunk || kind == Kind::kChunk;
      chunk_.is_node = chunk_.is_node || kind == Kind::kNode;
      SILTFS_RETURN_IF_ERROR(sorter_->Next());
    }
    return Status::Ok();
  }

  Env& env_;
  const KvSnapshot& metadata_;
  ChunkIndex& index_;
  const ChunkSurveyOptions& options_;
  SurveyProgress progress_;
  const MarkPace pace_;
  Pacer pacer_;
  LevelWalk recipes_;
  std::unique_ptr<RecordSorter<ThreeWords>> sorter_;
  uint64_t next_number_ = 0;
  ReferencedChunk chunk_;
  bool has_chunk_ = false;
  ChunkSurvey result_;
};

}  // namespace

Result<ChunkSurvey> SurveyChunks(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                 ChunkIndex& index, const SegmentRecords& segments,
                                 const ChunkSurveyOptions& options) {
  return Survey(env, metadata, nodes, index, segments, options).Run();
}

}  // namespace siltfs
