#include "fs/space/path_usage.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "fs/content/file_content.h"
#include "fs/diff/tree_reader.h"
#include "fs/kv/ascending_reads.h"
#include "fs/mark/level_walk.h"
#include "fs/mark/name_filter.h"
#include "fs/mark/shown_records.h"
#include "fs/records/lineage.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/space/chunk_users.h"
#include "fs/space/counted_names.h"
#include "fs/space/path_walk.h"
#include "fs/space/report_tree.h"

namespace siltfs {
namespace {

using Place = ReportTree::Place;
using Step = UsageProgress::Step;

// The memory of each of the smaller sorters, as a share of that for chunks.
constexpr size_t kShare = 8;
// So many inodes are walked between two reports of progress.
constexpr uint64_t kInodesBetweenReports = 256;

// A place of the report, and the directory that it stands for.
struct Reported {
  size_t path = 0;
  std::string below;
  uint64_t directories = 0;  // of this place alone
};

class UsageMeasurement {
 public:
  UsageMeasurement(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                   const std::vector<SnapshotBounds>& snapshots, const UsageRequest& request,
                   const UsageOptions& options)
      : env_(env),
        metadata_(metadata),
        nodes_(nodes),
        snapshots_(snapshots),
        request_(request),
        options_(options),
        pacer_(options.pace) {}

  Result<UsageReport> Run() {
    SILTFS_ASSIGN_OR_RETURN(chunks_, MakeSorter<TwoWords>(options_.memory_bytes));
    SILTFS_ASSIGN_OR_RETURN(auto names, MakeSorter<TwoWords>(options_.memory_bytes / kShare));
    names_.emplace(std::move(names));
    for (auto* const counted : {&counted_, &counted_again_}) {
      SILTFS_ASSIGN_OR_RETURN(auto sorter, MakeSorter<OneWord>(options_.memory_bytes / kShare));
      counted->emplace(std::move(sorter));
    }
    SILTFS_RETURN_IF_ERROR(WalkPaths());
    SILTFS_RETURN_IF_ERROR(WalkCounted());
    if (!filter_.empty()) {
      SILTFS_RETURN_IF_ERROR(WalkOthers());
      SILTFS_RETURN_IF_ERROR(AddKept());
    }
    SILTFS_RETURN_IF_ERROR(CountChunks());
    return Report();
  }

 private:
  template <typename Record>
  Result<std::unique_ptr<RecordSorter<Record>>> MakeSorter(size_t memory_bytes) {
    return RecordSorter<Record>::Create(env_, {.directory = options_.spill_directory,
                                               .memory_bytes = memory_bytes,
                                               .minimum_free_bytes = options_.minimum_free_bytes,
                                               .unnamed_files = true});
  }
  LevelWalkOptions RecipeOptions(Step step) {
    LevelWalkOptions made{.spill_directory = options_.spill_directory,
                          .memory_bytes = options_.memory_bytes / kShare,
                          .minimum_free_bytes = options_.minimum_free_bytes,
                          .unite = ChunkUser::Unite,
                          .visit = {},
                          .visit_node = {}};
    const auto add = [this, step](bool node) {
      return [this, step, node](const ChunkName& name, uint64_t length, uint64_t mark) {
        return step == Step::kFiles ? AddCounted(name, length, mark, node)
                                    : AddOther(name, length, mark, node);
      };
    };
    made.visit = add(/*node=*/false);
    made.visit_node = add(/*node=*/true);
    made.on_node = [this, step](uint64_t done, uint64_t total) { return Tell(step, done, total); };
    return made;
  }
  Status Tell(Step step, uint64_t done, uint64_t total) {
    if (!request_.scope.on_progress || done % kInodesBetweenReports != 0) return Status::Ok();
    return request_.scope.on_progress({.step = step, .done = done, .total = total});
  }

  // --- The names below the paths

  Status WalkPaths() {
    PathWalk walk(metadata_, request_.scope);
    PathVisitor visitor;
    visitor.enter = [this](const FoundName& found) { return Enter(found); };
    visitor.leave = [this] {
      above_.pop_back();
      return Status::Ok();
    };
    visitor.file = [this](const FoundName& found) { return AddFile(found); };
    SILTFS_RETURN_IF_ERROR(walk.Run(visitor));
    report_.left_out = walk.left_out();
    same_as_ = walk.same_as();
    return Status::Ok();
  }

  // A directory that the walk is in: its place, and how many levels it lies below the path.
  struct Above {
    Place place = 0;
    uint32_t depth = 0;
  };

  Result<Place> AddPlace(const FoundName& found, std::string below) {
    if (tree_.IsFull()) {
      return Status(StatusCode::kUnsupported,
                    "there are more than 65,535 paths and directories to report; give a lower "
                    "--max-depth or fewer paths");
    }
    reported_.push_back(
        {.path = found.path.value_or(reported_[CurrentPlace()].path), .below = std::move(below)});
    return tree_.Add(CurrentPlace());
  }
  Place CurrentPlace() const { return above_.empty() ? 0 : above_.back().place; }

  Status Enter(const FoundName& found) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    Above entered = above_.empty() ? Above{} : above_.back();
    ++entered.depth;
    if (found.path) {
      SILTFS_ASSIGN_OR_RETURN(entered.place, AddPlace(found, ""));
      entered.depth = 0;
    } else if (entered.depth <= request_.depth) {
      const std::string& parent = reported_[CurrentPlace()].below;
      SILTFS_ASSIGN_OR_RETURN(entered.place, AddPlace(found, (parent.empty() ? "" : parent + "/") +
                                                                 std::string(found.name)));
    }
    above_.push_back(entered);
    ++reported_[entered.place].directories;
    return Status::Ok();
  }

  Status AddFile(const FoundName& found) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    Place place = CurrentPlace();
    if (found.path) {
      SILTFS_ASSIGN_OR_RETURN(place, AddPlace(found, ""));
    }
    return names_->Add(found.inode, place);
  }

  // --- The inodes below the paths

  Status WalkCounted() {
    files_.emplace(tree_.size());
    logical_.emplace(tree_.size());
    pending_.emplace(tree_.size());
    LevelWalk recipes(env_, nodes_, RecipeOptions(Step::kFiles), pacer_);
    AscendingReads records(metadata_);
    SILTFS_RETURN_IF_ERROR(names_->Sort());
    CountedNames::Inode inode;
    for (uint64_t done = 1;; ++done) {
      SILTFS_ASSIGN_OR_RETURN(const bool more, names_->Next(inode));
      if (!more) break;
      SILTFS_RETURN_IF_ERROR(Tell(Step::kFiles, done, names_->added()));
      SILTFS_ASSIGN_OR_RETURN(const auto value, records.Get(InodeKey(inode.number)));
      if (!value) return Contradiction(inode.number, "has a name but does not exist");
      const auto record = InodeRecord::Decode(*value);
      if (!record.ok())
        return Status(record.status()).At(NameOfOwner(Table::kInode, InodeKey(inode.number)));
      SILTFS_RETURN_IF_ERROR(CountInode(inode, *record, recipes));
    }
    return recipes.Finish();
  }

  Status CountInode(const CountedNames::Inode& inode, const InodeRecord& record,
                    LevelWalk& recipes) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
    files_->AddOnce(tree_, inode.places, 1);
    SILTFS_RETURN_IF_ERROR(counted_->Add(inode.number));
    SILTFS_RETURN_IF_ERROR(counted_again_->Add(inode.number));
    if (!record.IsRegular()) return Status::Ok();
    logical_->AddOnce(tree_, inode.places, FileContent::AllocatedBytes(record));
    const bool named_elsewhere = record.links > inode.names;
    for (const Place place : inode.places) {
      const ChunkUser user{.place = place, .other = named_elsewhere};
      SILTFS_RETURN_IF_ERROR(recipes.Add(record.recipe, user.Encode()));
    }
    return record.has_overlay ? CountOverlay(inode, named_elsewhere) : Status::Ok();
  }

  Status CountOverlay(const CountedNames::Inode& inode, bool named_elsewhere) {
    const KeyRange range = RangeOf(Table::kOverlay, inode.number);
    const auto extents = metadata_.NewIteratorBelow(range.end);
    for (extents->Seek(range.begin); extents->Valid(); extents->Next()) {
      const auto extent = OverlayExtent::Decode(extents->value());
      if (!extent.ok())
        return Status(extent.status()).At(NameOfOwner(Table::kOverlay, extents->key()));
      if (extent->kind == OverlayExtent::Kind::kPlain)
        pending_->AddOnce(tree_, inode.places, extent->length);
      for (const ChunkSlice& slice : extent->slices) {
        for (const Place place : inode.places) {
          const ChunkUser user{.place = place, .other = named_elsewhere};
          SILTFS_RETURN_IF_ERROR(AddCounted(slice.name, slice.chunk_length, user.Encode()));
        }
      }
    }
    return extents->status();
  }

  Status AddCounted(const ChunkName& name, uint64_t length, uint64_t mark, bool node = false) {
    filter_.Add(name);
    return chunks_->Add(ChunkReference::Encode(name, length, mark, node));
  }

  // --- All other records

  Status WalkOthers() {
    LevelWalk recipes(env_, nodes_, RecipeOptions(Step::kStore), pacer_);
    uint64_t walked = 0;
    const auto add_recipe = [&](std::string_view value, uint64_t mark) -> Status {
      SILTFS_RETURN_IF_ERROR(Tell(Step::kStore, ++walked, options_.inodes));
      if (mark == 0) return Status::Ok();
      SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
      return recipes.Add(record.recipe, mark);
    };
    const auto add_slices = [&](std::string_view value, uint64_t mark) -> Status {
      if (mark == 0) return Status::Ok();
      SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
      for (const ChunkSlice& slice : extent.slices)
        SILTFS_RETURN_IF_ERROR(AddOther(slice.name, slice.chunk_length, mark));
      return Status::Ok();
    };
    SILTFS_RETURN_IF_ERROR(WalkTable(Table::kInode, *counted_, add_recipe));
    SILTFS_RETURN_IF_ERROR(WalkTable(Table::kOverlay, *counted_again_, add_slices));
    return recipes.Finish();
  }

  // `mark`: 0 for a value that only files below the paths have.
  using VisitOther = std::function<Status(std::string_view value, uint64_t mark)>;

  Status WalkTable(Table table, CountedInodes& counted, const VisitOther& visit) {
    SILTFS_RETURN_IF_ERROR(counted.Sort());
    const size_t live = snapshots_.size();
    return ForEachShownRecord(
        metadata_, table, snapshots_, pacer_,
        [&](std::string_view key, std::string_view value, const ShownBy& shown) -> Status {
          ChunkUser user{.snapshot = shown.first < live, .other = shown.last == live};
          if (user.other) {
            // The live files come first, so their inodes ascend.
            const uint64_t inode = InodeOf(table, key);
            if (LineageOf(inode) == kLiveLineage) {
              SILTFS_ASSIGN_OR_RETURN(const bool is_counted, counted.Contains(inode));
              user.other = !is_counted;
            }
          }
          return visit(value, user.Encode());
        });
  }

  static uint64_t InodeOf(Table table, std::string_view key) {
    if (table == Table::kInode) return ParseInodeKey(table, key).value_or(0);
    const auto parts = ParseNumberedKey(table, key);
    return parts ? parts->inode : 0;
  }

  Status AddOther(const ChunkName& name, uint64_t length, uint64_t mark, bool node = false) {
    if (!filter_.MayContain(name)) return Status::Ok();
    return chunks_->Add(ChunkReference::Encode(name, length, mark, node));
  }

  // What garbage collection keeps for other reasons is not freed, as if other files had it.
  Status AddKept() {
    if (!options_.more) return Status::Ok();
    return options_.more([this](const ChunkName& name) {
      return AddOther(name, 0, ChunkUser{.other = true}.Encode());
    });
  }

  // --- Results

  Status CountChunks() {
    exclusive_.emplace(tree_.size());
    snapshot_.emplace(tree_.size());
    recipes_.emplace(tree_.size());
    referenced_.emplace(tree_.size());
    SILTFS_RETURN_IF_ERROR(chunks_->Sort());
    std::vector<Place> places;
    while (!chunks_->AtEnd()) {
      const uint64_t prefix = chunks_->record()[0];
      ChunkUser all;
      uint64_t length = 0;
      bool node = false;
      places.clear();
      for (; !chunks_->AtEnd() && chunks_->record()[0] == prefix;) {
        SILTFS_RETURN_IF_ERROR(pacer_.Step());
        const ChunkUser user = ChunkReference::UserOf(chunks_->record());
        all.snapshot = all.snapshot || user.snapshot;
        all.other = all.other || user.other;
        length = std::max(length, ChunkReference::LengthOf(chunks_->record()));
        node = node || ChunkReference::IsNode(chunks_->record());
        if (user.place != 0 && (places.empty() || places.back() != user.place))
          places.push_back(user.place);
        SILTFS_RETURN_IF_ERROR(chunks_->Next());
      }
      if (!places.empty()) CountChunk(places, all, length, node);
    }
    return Status::Ok();
  }

  void CountChunk(const std::vector<Place>& places, const ChunkUser& all, uint64_t length,
                  bool node) {
    // The places are in the order of a walk, so the first and the last one decide.
    const Place lowest = tree_.LowestCommon(places.front(), places.back());
    const bool exclusive = !all.other && !all.snapshot;
    if (node) {
      if (exclusive) recipes_->Add(lowest, length);
      return;
    }
    referenced_->AddOnce(tree_, places, length);
    if (lowest == 0) report_.shared_among_bytes += length;
    if (!all.other) (exclusive ? *exclusive_ : *snapshot_).Add(lowest, length);
  }

  SpaceUsage UsageOf(Place place) const {
    const uint64_t exclusive = exclusive_->At(place);
    return {.files = files_->At(place),
            .directories = directories_->At(place),
            .logical_bytes = logical_->At(place),
            .exclusive_bytes = exclusive,
            .shared_bytes = referenced_->At(place) - exclusive,
            .snapshot_bytes = snapshot_->At(place),
            .recipe_bytes = recipes_->At(place),
            .pending_bytes = pending_->At(place)};
  }

  UsageReport Report() {
    directories_.emplace(tree_.size());
    for (size_t place = 0; place < reported_.size(); ++place)
      directories_->Add(static_cast<Place>(place), reported_[place].directories);
    for (auto* const sums : {&files_, &directories_, &logical_, &pending_, &exclusive_, &snapshot_,
                             &recipes_, &referenced_})
      (*sums)->Finish(tree_);
    report_.total = UsageOf(0);
    for (Place place = 1; place < tree_.size(); ++place) {
      const Reported& reported = reported_[place];
      for (size_t path = 0; path < same_as_.size(); ++path) {
        if (same_as_[path] == reported.path)
          report_.entries.push_back({path, reported.below, UsageOf(place)});
      }
    }
    std::ranges::sort(report_.entries, {},
                      [](const UsageEntry& entry) { return std::tie(entry.path, entry.below); });
    return std::move(report_);
  }

  Env& env_;
  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  const std::vector<SnapshotBounds>& snapshots_;
  const UsageRequest& request_;
  const UsageOptions& options_;
  Pacer pacer_;

  ReportTree tree_;
  std::vector<Reported> reported_{Reported{}};  // by place
  std::vector<Above> above_;                    // the directories that the walk is in
  std::vector<size_t> same_as_;
  std::optional<CountedNames> names_;
  std::optional<CountedInodes> counted_;        // the inodes below the paths
  std::optional<CountedInodes> counted_again_;  // the same, for the walk over overlays
  NameFilter filter_;                           // of the chunks of these inodes
  std::unique_ptr<RecordSorter<TwoWords>> chunks_;
  std::optional<ReportTree::Sums> files_, directories_, logical_, pending_;
  std::optional<ReportTree::Sums> exclusive_, snapshot_, recipes_, referenced_;  // bytes of chunks
  UsageReport report_;
};

}  // namespace

Result<UsageReport> MeasureUsage(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                 const std::vector<SnapshotBounds>& snapshots,
                                 const UsageRequest& request, const UsageOptions& options) {
  return UsageMeasurement(env, metadata, nodes, snapshots, request, options).Run();
}

}  // namespace siltfs
