// Writes the records of received snapshots (fs/records/lineage.h), beside the commits of the live
// files.
//
// Thread-safety: every call from any thread that may commit; one caller at a time for each lineage.
// Errors: those of MetadataStore. Durability: changes are durable on the local disk on return; see
// MetadataStore::AwaitShipped.
#pragma once

#include <optional>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/lineage.h"
#include "fs/records/snapshot_record.h"

namespace siltfs {

class LineagePort {
 public:
  virtual ~LineagePort() = default;

  virtual Lineages AllLineages() const = 0;
  // Adds an empty lineage. kUnsupported if all numbers are used.
  virtual Result<LineageNumber> AddLineage(const LineageRecord& record) = 0;
  // Changes the record of a lineage, or removes it. A lineage that is removed has neither records
  // nor snapshots.
  virtual Status SetLineage(LineageNumber lineage, const std::optional<LineageRecord>& record) = 0;
  // Changes records of the head, and the lineage's record, in one write. The keys are those of the
  // tables of inodes without the lineage. The newest snapshot of the lineage keeps what it shows.
  virtual Status WriteHead(LineageNumber lineage, const std::vector<Mutation>& records,
                           const LineageRecord& record) = 0;
  // Ends a restore of the head to what this snapshot shows: the lineage is unchanged. Does nothing
  // if the snapshot is not the newest one any more, or if a snapshot is incoming.
  virtual Status EndHeadRestore(LineageNumber lineage, uint64_t restored) = 0;
  // Makes the head of the lineage a snapshot with this record, but for its number. The lineage is
  // then unchanged, and nothing is incoming. kAlreadyExists if another snapshot has the name.
  virtual Result<NumberedSnapshot> AddReceived(SnapshotRecord record) = 0;
};

}  // namespace siltfs
