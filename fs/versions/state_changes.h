// Lists how the records of inodes differ between a snapshot and a newer state of its lineage.
//
// First come the keys that have changed since the older state (changed_keys.h), then the keys of
// newer inodes. A *place* says where the list goes on; the same list can go on from it later, as
// long as both states exist.
//
// Thread-safety: one thread. Errors: those of the key-value store and of `visit`; kCorruption for
// malformed versions. Memory: two values. Cost: two lookups for each changed key, and a walk over
// the newer inodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

struct ComparedLineageStates {
  std::shared_ptr<const KvSnapshot> metadata;  // with all versions
  LineageNumber lineage = kLiveLineage;
  std::optional<SnapshotBounds> older = {};  // empty: a state without any record
  std::optional<SnapshotBounds> newer = {};  // empty: the present state, which is the head
};

struct RecordChange {
  std::string_view key;  // without the lineage
  std::optional<std::string> before = {};
  std::optional<std::string> after = {};
};

class StateChanges {
 public:
  explicit StateChanges(ComparedLineageStates states);

  const KvSnapshot& before() const { return *before_; }
  const KvSnapshot& after() const { return *after_; }

  // Visits the records that differ, from `place` on (empty: from the beginning), until `visit`
  // returns false. `next` is the place behind the record that is visited.
  Status ForEach(
      std::string_view place,
      const std::function<Result<bool>(RecordChange& change, std::string_view next)>& visit) const;

 private:
  using Visit = std::function<Result<bool>(RecordChange&, std::string_view)>;

  // Return false if `visit` did.
  Result<bool> VisitChanged(std::string_view from, const Visit& visit) const;
  Result<bool> VisitNewer(std::string_view from, const Visit& visit) const;

  const ComparedLineageStates states_;
  const std::shared_ptr<const KvSnapshot> before_;
  const std::shared_ptr<const KvSnapshot> after_;
};

}  // namespace siltfs
