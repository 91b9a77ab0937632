// Writes one snapshot stream (fs/stream/stream_messages.h).
//
// With a base, only the records that differ are sent. In a one-way transfer, the sender finds out
// which chunks the base has: it collects the names of the changed records' chunks in a filter, and
// then reads all references of the base. In a two-way transfer the receiver says which chunks it
// lacks.
//
// Not thread-safe. Ownership: borrows all arguments, which must outlive it. The snapshots must
// exist meanwhile. Memory: a batch of records, and as in chunk_sender.h and sent_chunks.h. Errors:
// as SnapshotTransfers::Send.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/interface/snapshot_transfers.h"
#include "fs/recipe/recipe_difference.h"
#include "fs/records/hidden_range.h"
#include "fs/records/inode_record.h"
#include "fs/replication/chunk_sender.h"
#include "fs/stream/stream_frames.h"
#include "fs/versions/state_changes.h"

namespace siltfs {

// The inodes of a state that have a name. Others are not sent: inodes that programs had open, and
// those of clones that were not finished.
class NamedInodes {
 public:
  NamedInodes(const KvSnapshot& state, const std::vector<HiddenRange>& hidden)
      : state_(state), hidden_(hidden) {}

  Result<bool> Contains(uint64_t inode);
  // Spares the next Contains its lookup. `value`: the inode's record in the state.
  Status Learn(uint64_t inode, std::string_view value);

 private:
  const KvSnapshot& state_;
  const std::vector<HiddenRange>& hidden_;
  uint64_t inode_ = 0;  // the inode of the last call; 0: none
  bool contained_ = false;
};

// Reads nodes with a Use for each call: the sender waits for the receiver in between.
class UsedNodes final : public NodeStore {
 public:
  explicit UsedNodes(ChunkStore& chunks) : chunks_(chunks) {}

  Result<ChunkName> PutNode(ByteView) override {
    return Status(StatusCode::kReadOnly, "a sender puts no nodes");
  }
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name,
                                               uint32_t node_bytes) override {
    const ChunkStore::Use use(chunks_);
    return chunks_.GetNode(name, node_bytes);
  }

 private:
  ChunkStore& chunks_;
};

class SnapshotSender {
 public:
  struct Options {
    ComparedLineageStates states;  // `newer` is the snapshot, `older` the base
    StreamBegin begin;
    std::function<Status()> check;
  };
  SnapshotSender(ChunkStore& chunks, ChunkNamer& namer, Options options, ByteSink& out,
                 ByteSource* answers);

  Result<SendOutcome> Send();

 private:
  // Two-way: waits until the receiver is ready, and goes on where it says.
  Status AwaitReady(bool at_beginning);
  // Finds the chunks of changed records that the base has.
  Status FindChunksOfBase();
  Status ForEachReferenceOfBase(const std::function<Status(const ChunkName&)>& visit);
  Status SendChanges();
  // Sends a change: collects its chunks and its record.
  Status SendChange(const RecordChange& change);
  Status SendBatch(std::string_view next);
  // Whether the record is sent: not if it follows from others, and not if the receiver has no such
  // record. Changes it to what the receiver shall have.
  Result<bool> Prepare(RecordChange& change);
  // Sends the other records of a file that had no name in the base. Its records that have not
  // changed are no changes, but the receiver does not have them.
  Status SendWhole(uint64_t inode);
  // Sends the removal of the other records of a file that has no name any more, but was open when
  // the snapshot was made. They are no changes.
  Status SendGone(uint64_t inode);
  // Sends what a file has besides its inode. Writes batches that become full.
  Status ForEachOther(const KvSnapshot& state, uint64_t inode,
                      const std::function<Status(const KvIterator&)>& send);
  // Remembers which file has replaced which other one under the same name.
  void NoteReplaced(const RecordChange& change);
  // Remembers the recipe of a new file, so that the walk over the base finds the same one.
  Status NoteRecipe(const RecordChange& change);
  Status FindRecipe(uint64_t inode, std::string_view value);
  // The record of a file of the base that the changed one resembles: the same file, one with the
  // same content, such as the source of a clone, or the one that it has replaced. Sets `key` to its
  // key.
  Result<std::optional<std::string>> Predecessor(const RecordChange& change, std::string& key);
  // Calls `visit` for the chunks and nodes of the new value that are not in the old one.
  Status ForEachReference(const RecordChange& change, const NewReferences& visit);
  Status VisitReferences(std::string_view key, std::string_view value, const Recipe& before,
                         const NewReferences& visit);
  Status Step();

  UsedNodes nodes_;
  const Options options_;
  const StateChanges changes_;
  StreamWriter writer_;
  std::optional<StreamReader> answers_;
  ChunkSender sender_;
  std::vector<HiddenRange> hidden_;  // inodes of clones that are not finished
  // Files that have replaced others, by inode.
  std::unordered_map<uint64_t, uint64_t> replaced_;
  // By the checksum of its recipe: a file of the base with this recipe, or 0. Of new files.
  std::unordered_map<uint64_t, uint64_t> same_recipe_;
  std::string position_;
  StreamRecords batch_;
  size_t batch_bytes_ = 0;
  uint64_t records_ = 0;
  uint64_t steps_ = 0;
  NamedInodes named_;         // in the snapshot
  NamedInodes named_before_;  // in the base
};

}  // namespace siltfs
