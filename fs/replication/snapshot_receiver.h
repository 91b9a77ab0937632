// Reads one snapshot stream (fs/stream/stream_messages.h) into a lineage (fs/records/lineage.h).
//
// Each batch of the stream is verified and made durable before the next one: first its chunks, by a
// commit, then its records together with the place where the sender can go on. When the stream has
// ended, all changes are checked (received_check.h), and the head becomes a snapshot.
//
// Not thread-safe. Ownership: borrows the parts of the store and the streams. Memory: one message,
// one batch of records, and as in chunk_receiver.h and received_check.h. Errors and durability: as
// SnapshotTransfers::Receive.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/inodes/store_context.h"
#include "fs/interface/snapshot_transfers.h"
#include "fs/meta/lineage_port.h"
#include "fs/meta/snapshot_port.h"
#include "fs/replication/chunk_receiver.h"
#include "fs/snapshots/snapshot_trees.h"
#include "fs/stream/stream_frames.h"

namespace siltfs {

class SnapshotReceiver {
 public:
  // `restore_heads` makes lineages whose incoming snapshot was discarded usable again.
  SnapshotReceiver(const StoreContext& store, SnapshotTrees& trees, const ReceiveRequest& request,
                   ByteSource& in, std::function<Status()> restore_heads,
                   std::function<Status()> check);

  // Receives the stream. If this fails, tells a sender that waits for answers why.
  Result<NumberedSnapshot> Receive();

  uint64_t records() const { return records_; }
  const ChunkReceiver& chunks() const { return chunks_; }

 private:
  Result<NumberedSnapshot> ReceiveAll();
  Status Begin();
  // Finds or makes the lineage, and discards another incoming snapshot in it.
  Status ChooseLineage();
  // Finds the base, and keeps it from being removed. It must be the newest snapshot of its lineage.
  Status HoldBase(const SnapshotId& id);
  // Goes on with an incoming snapshot, at the position of the stream.
  Status GoOn(const LineageRecord& record);
  Status Apply(const StreamRecords& message);
  // The value that the base has for the key.
  Result<std::optional<std::string>> BaseValue(const std::string& key) const;
  // Makes the value of a patch whole.
  static Status ApplyPatch(StreamRecord& record, const std::string& base);
  // `base`: of a patch. The base has the chunks of this record.
  Status VerifyReferences(const KvSnapshot& head, const StreamRecord& record,
                          const std::optional<std::string>& base);
  // Adds the changes of the cookie that belongs to a name.
  Status AddCookies(const KvSnapshot& head, const StreamRecord& record,
                    std::vector<Mutation>& removed, std::vector<Mutation>& added) const;
  Result<NumberedSnapshot> Publish(const StreamEnd& end);
  Result<StreamMessage> Next();
  Status Answer(const StreamMessage& message);

  SnapshotPort& snapshots() const { return *store_.metadata().snapshots(); }
  LineagePort& lineages() const { return *store_.metadata().lineages(); }

  const StoreContext& store_;
  SnapshotTrees& trees_;
  const ReceiveRequest& request_;
  const std::function<Status()> restore_heads_;
  const std::function<Status()> check_;
  ByteSource& in_;
  StreamReader reader_;
  std::optional<StreamWriter> answers_;
  ChunkReceiver chunks_;
  StreamBegin begin_;
  std::string name_;  // of the new snapshot
  std::optional<NumberedSnapshot> base_;
  std::optional<SnapshotTrees::Hold> base_hold_;
  LineageNumber lineage_ = kLiveLineage;
  LineageRecord record_;
  uint64_t records_ = 0;
};

}  // namespace siltfs
