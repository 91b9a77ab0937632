// Copies snapshots between stores, as a stream of bytes (docs/format.md, "Snapshot stream").
//
// A stream holds a whole snapshot, or what differs between a base and a newer snapshot. The store
// that receives a stream with a base must have received this base before. A received snapshot
// belongs to the *lineage* of its base: a sequence of states that come from the same store. It is
// used like each other snapshot.
//
// A one-way stream holds all chunks that the base lacks. In a two-way transfer the receiver answers
// on a second stream, and names the chunks that it lacks.
//
// If a transfer ends early, the receiver keeps what has arrived (UnfinishedReceive). A later
// transfer of the same snapshot goes on: a two-way one by itself, a one-way one from the token.
// Another snapshot of the lineage, or Abandon, discards it.
//
// Thread-safety: every call from any thread; one Receive at a time. Ownership: belongs to the
// FileSystem (FileSystem::transfers). The streams belong to the caller. Errors: as stated; those of
// the streams and of `check`, which is called now and then; kReadOnly if a store that shall receive
// is read-only. Durability: a received snapshot is durable on return.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/snapshots.h"
#include "store/base/byte_stream.h"

namespace siltfs {

struct SendRequest {
  std::string snapshot;                  // name
  std::optional<std::string> base = {};  // name of an older snapshot
  std::string resume = {};        // the token of an UnfinishedReceive; empty: from the beginning
  ByteSource* answers = nullptr;  // of the receiver; null: a one-way transfer
};

struct SendOutcome {
  uint64_t records = 0;      // of metadata
  uint64_t chunks = 0;       // recipe nodes included
  uint64_t plain_bytes = 0;  // of these chunks, uncompressed
};

struct ReceiveRequest {
  std::string name = {};        // of the new snapshot; empty: as it is named in the stream
  ByteSink* answers = nullptr;  // to the sender; null: a one-way transfer
  // How long a batch may wait for bytes of the stream. Garbage collection waits for the batch.
  std::chrono::nanoseconds batch_patience = std::chrono::minutes(1);
};

struct ReceiveOutcome {
  SnapshotInfo snapshot;
  uint64_t records = 0;
  uint64_t chunks = 0;
  uint64_t plain_bytes = 0;
};

// A transfer that ended early.
struct UnfinishedReceive {
  std::string name;   // of the snapshot, as the stream names it
  std::string token;  // SendRequest::resume: printable, without spaces
  bool running = false;
};

class SnapshotTransfers {
 public:
  virtual ~SnapshotTransfers() = default;

  // Writes the stream to `out`. The snapshots cannot be removed meanwhile. kNotFound if there is no
  // such snapshot; kInvalidArgument if the base is not an older snapshot of the same lineage, or if
  // the token belongs to another snapshot or base; kAborted if the receiver refuses.
  virtual Result<SendOutcome> Send(const SendRequest& request, ByteSink& out,
                                   const std::function<Status()>& check) = 0;

  // Reads a stream, verifies it, and makes the snapshot. The snapshot appears as a whole, at the
  // end. kAlreadyExists if its name is taken, or if the store has this snapshot; kAborted if the
  // store does not have the base; kInvalidArgument if the base is not the newest snapshot of its
  // lineage; kCorruption if the stream is malformed or inconsistent; kInterrupted if it ends early,
  // or stalls within a batch (batch_patience); kInUse while another stream is received; kNeedsNewer
  // for a stream of a newer version.
  virtual Result<ReceiveOutcome> Receive(const ReceiveRequest& request, ByteSource& in,
                                         const std::function<Status()>& check) = 0;

  virtual std::vector<UnfinishedReceive> Unfinished() const = 0;
  // Discards an unfinished receive of this name. kNotFound if there is none; kInUse if it runs.
  virtual Status Abandon(std::string_view name) = 0;
};

}  // namespace siltfs
