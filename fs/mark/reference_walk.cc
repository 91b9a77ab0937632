#include "fs/mark/reference_walk.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "fs/recipe/recipe_reader.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/versions/version_walk.h"

namespace siltfs {
namespace {

class ReferenceWalk {
 public:
  ReferenceWalk(const KvSnapshot& metadata, NodeStore& nodes, NodeSet& walked, Pacer& pacer,
                const ReferenceVisit& visit)
      : metadata_(metadata), nodes_(nodes), walked_(walked), pacer_(pacer), visit_(visit) {
    visitor_.node = [this](const RecipeChild& node, uint8_t, uint64_t) { return EnterNode(node); };
    visitor_.entry = [this](const RecipeEntry& entry, uint64_t) { return VisitEntry(entry); };
  }

  // Inodes without a name that are still open are in the same table as all others. Snapshots may
  // show older versions of inodes.
  Status WalkInodes() {
    return ForEachValue(Table::kInode, [this](std::string_view value) -> Status {
      SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
      return WalkTree(record.recipe);
    });
  }

  Status WalkOverlays() {
    return ForEachValue(Table::kOverlay, [this](std::string_view value) -> Status {
      SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
      for (const ChunkSlice& slice : extent.slices) SILTFS_RETURN_IF_ERROR(Visit(slice.name));
      return Status::Ok();
    });
  }

 private:
  // Calls `decode` with all values of the table, and with the older versions of these values.
  Status ForEachValue(Table table, const std::function<Status(std::string_view)>& decode) {
    const KeyRange range = RangeOf(table);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      Status walked = decode(iterator->value());
      if (!walked.ok()) return std::move(walked).At(NameOfOwner(table, iterator->key()));
      if (table == Table::kInode) pacer_.CountFile();
      SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return ForEachVersion(
        metadata_, range.begin, range.end,
        [&](const VersionKeyParts& version, std::string_view value) -> Status {
          Status walked = decode(value);
          if (!walked.ok())
            return std::move(walked).At(NameOfOwner(table, version.key) + " in a snapshot");
          return pacer_.Step(Pacer::kRecordWork);
        });
  }

  Status WalkTree(const Recipe& recipe) {
    SILTFS_RETURN_IF_ERROR(WalkRecipe(nodes_, recipe, visitor_));
    return TakeFailure();
  }

  // Called before a node is read. Returns whether the node is to be walked. It cannot return a
  // Status, so it stores a failure in failure_.
  bool EnterNode(const RecipeChild& node) {
    if (failure_ || !walked_.Insert(node.name)) return false;
    Status entered = pacer_.Step(Pacer::kNodeWork);
    if (entered.ok()) entered = Visit(node.name);
    if (entered.ok()) return true;
    failure_ = std::move(entered);
    return false;
  }

  Status TakeFailure() {
    if (!failure_) return Status::Ok();
    Status failure = *std::move(failure_);
    failure_.reset();
    return failure;
  }

  Status VisitEntry(const RecipeEntry& entry) {
    if (failure_) return TakeFailure();
    return entry.is_hole() ? Status::Ok() : Visit(entry.name);
  }

  Status Visit(const ChunkName& name) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    return visit_(name);
  }

  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  NodeSet& walked_;
  Pacer& pacer_;
  const ReferenceVisit& visit_;
  RecipeVisitor visitor_;
  std::optional<Status> failure_;  // of EnterNode
};

}  // namespace

std::string NameOfOwner(Table table, std::string_view key) {
  if (table == Table::kInode) {
    if (const auto inode = ParseInodeKey(table, key)) return fmt::format("inode {}", *inode);
  } else if (const auto place = ParseNumberedKey(table, key)) {
    return fmt::format("inode {}", place->inode);
  }
  return "an inode with a malformed key";
}

Status WalkReferences(const KvSnapshot& metadata, NodeStore& nodes, NodeSet& walked, Pacer& pacer,
                      const ReferenceVisit& visit) {
  ReferenceWalk walk(metadata, nodes, walked, pacer, visit);
  SILTFS_RETURN_IF_ERROR(walk.WalkInodes());
  return walk.WalkOverlays();
}

}  // namespace siltfs
