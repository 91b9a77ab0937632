#include "fs/versions/state_changes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fs/versions/changed_keys.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
namespace {

// The first byte of a place, before a key of the list of versions or of the newer inodes.
constexpr char kInChanged = 'c';
constexpr char kInNewer = 'n';

Status Malformed() { return {StatusCode::kCorruption, "a version of a record is malformed"}; }

class NoRecords final : public KvSnapshot {
 public:
  Result<std::optional<std::string>> Get(std::string_view) const override {
    return std::optional<std::string>();
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view) const override {
    return std::make_unique<AtEnd>();
  }

 private:
  class AtEnd final : public KvIterator {
   public:
    void Seek(std::string_view) override {}
    void Next() override {}
    bool Valid() const override { return false; }
    std::string_view key() const override { return {}; }
    std::string_view value() const override { return {}; }
    Status status() const override { return Status::Ok(); }
  };
};

}  // namespace

StateChanges::StateChanges(ComparedLineageStates states)
    : states_(std::move(states)),
      before_(states_.older ? MakeSnapshotView(states_.metadata, *states_.older)
                            : std::make_shared<const NoRecords>()),
      after_(states_.newer ? MakeSnapshotView(states_.metadata, *states_.newer)
                           : MakeLineageView(states_.metadata, states_.lineage)) {}

Status StateChanges::ForEach(
    std::string_view place,
    const std::function<Result<bool>(RecordChange&, std::string_view)>& visit) const {
  const bool newer = !place.empty() && place[0] == kInNewer;
  if (!place.empty()) place.remove_prefix(1);
  if (states_.older && !newer) {
    SILTFS_ASSIGN_OR_RETURN(const bool more, VisitChanged(place, visit));
    if (!more) return Status::Ok();
  }
  return VisitNewer(newer ? place : std::string_view(), visit).status();
}

Result<bool> StateChanges::VisitChanged(std::string_view from, const Visit& visit) const {
  const SnapshotNumber end =
      states_.newer ? states_.newer->number : std::numeric_limits<SnapshotNumber>::max();
  bool more = true;
  Status visited = ForEachChangedKey(
      *states_.metadata, *states_.older, end, from, [&](const ChangedKey& changed) -> Result<bool> {
        SILTFS_ASSIGN_OR_RETURN(const auto version, states_.metadata->Get(VersionKey(
                                                        changed.stored_key, changed.kept_for)));
        const auto value = version ? DecodeVersion(*version) : std::nullopt;
        if (!value) return Malformed();
        RecordChange change{.key = changed.key};
        if (*value) change.before.emplace(**value);
        SILTFS_ASSIGN_OR_RETURN(change.after, after_->Get(changed.key));
        if (change.before == change.after) return true;
        SILTFS_ASSIGN_OR_RETURN(more,
                                visit(change, std::string(1, kInChanged).append(changed.place)));
        return more;
      });
  SILTFS_RETURN_IF_ERROR(visited);
  return more;
}

Result<bool> StateChanges::VisitNewer(std::string_view from, const Visit& visit) const {
  const uint64_t first = states_.older ? WithoutLineage(states_.older->inode_limit) : 0;
  // A limit of all numbers leaves no newer inodes.
  if (states_.older && states_.older->inode_limit == InLineage(states_.lineage + 1, 0)) return true;
  for (const Table table : kTablesOfInodes) {
    const KeyRange range = RangeOf(table, first, kInodesPerLineage);
    if (from >= range.end) continue;
    const auto records = after_->NewIteratorBelow(range.end);
    records->Seek(from < range.begin ? range.begin : std::string(from) + '\0');
    for (; records->Valid(); records->Next()) {
      RecordChange change{.key = records->key(), .after = std::string(records->value())};
      SILTFS_ASSIGN_OR_RETURN(const bool more,
                              visit(change, std::string(1, kInNewer).append(records->key())));
      if (!more) return false;
    }
    SILTFS_RETURN_IF_ERROR(records->status());
  }
  return true;
}

}  // namespace siltfs
