// Metadata with groups and commits, on which the crash model depends (docs/crash-model.md).
//
// Operations change metadata by Apply: it adds a list of mutations atomically to the *open group*,
// an ordered map key -> value or tombstone in memory. A *commit* closes the group, and a new group
// opens at once. The commit makes the participant sync all data that the closed group may refer to.
// Then it writes the group and the commit number as one atomic synced batch. So after a crash the
// store holds exactly the operations up to some commit, in the order they were applied.
//
// Reading: a View pins the open group, the group being committed and a snapshot of the key-value
// store, all at one moment. The View returns the newest value that these three have for a key.
//
// Thread-safety: every call from any thread. If an Apply depends on an earlier read, the caller
// must hold a lock of its own from the read to the Apply. The store's commit thread commits on
// request and when the group is full. If there are changes, it also commits every commit interval
// and when changes pause (commit_pace.h). A store without changes does nothing. Concurrent Commit
// calls share one commit.
//
// Memory: a group grows to about `group_bytes`, and WaitForRoom blocks until the open group is
// smaller. An operation calls WaitForRoom *before* it takes locks or calls Apply. Apply itself does
// not wait for room.
//
// Errors: if a commit fails with an error other than kNoSpace, the store is read-only permanently.
// Callers that waited for that commit get its error. Later calls of Apply, WaitForRoom and Commit
// fail with kReadOnly and the first failure's cause; reads still succeed. If an attempt to commit
// fails with kNoSpace, the closed group is kept, and the next attempt uses the same number. Callers
// that already waited when the failed attempt began get kNoSpace. A caller that waits later starts
// the next attempt.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/meta/commit_port.h"
#include "fs/meta/lineage_port.h"
#include "fs/meta/quota_differences.h"
#include "fs/meta/snapshot_port.h"

namespace siltfs {

// Makes the data durable that a closing group may refer to. Called on the commit thread, one commit
// at a time.
class CommitParticipant {
 public:
  virtual ~CommitParticipant() = default;
  // All chunks written before this call must be durable on return. The participant adds to `extra`
  // mutations that are written in the same batch (segment records, totals); their keys must never
  // be written by Apply. `number` is this commit's number. If this call or the batch fails with
  // kNoSpace, the call is repeated with the same number. PrepareCommit may call Get, Pin, counters,
  // last_commit and WriteThrough of the MetadataStore, but no function that waits for a commit.
  virtual Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) = 0;
  // Called when the batch is durable and last_commit() returns its number. Commit(number) returns
  // only after this call.
  virtual void CommitDone(uint64_t number) = 0;
};

// Implemented by a component that defers the mutations of accepted operations until their group
// closes.
//
// Such an operation *joins* the open group (MetadataStore::Join). It then belongs to the group's
// commit, as if its mutations had been applied at that moment. ApplyTo adds the mutations later, in
// FlushDeferred at the latest.
class DeferredChanges {
 public:
  virtual ~DeferredChanges() = default;
  // Called on the commit thread when the group of commit `number` is closed, before PrepareCommit.
  // On return, the mutations of all operations that joined that group must have been added to it.
  // New operations join the next group. FlushDeferred may call ApplyTo, and all functions that
  // CommitParticipant::PrepareCommit may call.
  virtual Status FlushDeferred(uint64_t number) = 0;
};

// Store-wide totals; Counter in schema.h says what they count. Each Apply adds differences to them,
// and each commit writes the totals of the operations that it includes.
inline constexpr size_t kCounterCount = 8;
using Counters = std::array<int64_t, kCounterCount>;

// The defaults of a mount are those of FileSystemOptions.
struct MetadataOptions {
  size_t group_bytes = 0;  // required; up to two groups are in memory at a time
  std::chrono::milliseconds commit_interval{0};
  // If there is no change for this long, the earlier changes are committed before the interval is
  // over. 0: no early commits.
  std::chrono::milliseconds quiet_interval{0};
  // A monotonic clock to use instead of the machine's. The commit thread sleeps in real time for
  // the time that remains until a deadline of this clock, and then looks at this clock again.
  std::function<std::chrono::nanoseconds()> clock = {};
  bool read_only = false;  // Apply returns kReadOnly, and there is no commit thread
};

// The metadata at one moment. Cheap to make; hold it no longer than one operation (it pins memory),
// and not across Close.
//
// Exactness: a view always shows the operations that were applied before it was made. It shares the
// groups that were not durable at that moment. As long as such a group can change, each lookup may
// or may not show mutations that were added to the group later. A single Get or a batch of a Scan
// (at most 64 entries) sees either all mutations of an Apply or none. If no Apply changes a key
// during a Scan, the Scan visits the key exactly once if it exists, and never if it does not. Keys
// come in strictly ascending order. Errors: those of the key-value store.
class View {
 public:
  class Source;
  explicit View(std::shared_ptr<const Source> source);

  Result<std::optional<std::string>> Get(std::string_view key) const;
  // Visits keys in [begin, end) in order until `visit` returns false; an empty `end` means no end.
  // `visit` is called with no lock held. Memory: one batch of each group, however large the range.
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit) const;

 private:
  std::shared_ptr<const Source> source_;
};

class MetadataStore : public CommitPort {
 public:
  // An empty `kv` counts as commit number 0. kCorruption if the commit number or the counters in
  // `kv` are malformed. If the result is destroyed without Close, uncommitted operations are lost
  // and the key-value store is left as after a crash.
  static Result<std::unique_ptr<MetadataStore>> Open(std::unique_ptr<KvStore> kv,
                                                     MetadataOptions options);

  // Registers the participant of all commits. Call it at most once, before the first Apply or Join.
  // The participant must exist until EndCommits returns. Without a participant, commits write
  // metadata only.
  virtual void SetParticipant(CommitParticipant* participant) = 0;

  virtual View Pin() const = 0;
  // Returns the newest value of a key, without pinning a view.
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;

  // Returns when the open group has room. If the open group is full, the call closes it, opens an
  // empty group, and starts the commit of the closed group. If the previous group is not committed
  // yet, the call first starts another attempt to commit it, and waits. If this attempt fails with
  // kNoSpace, the call returns kNoSpace.
  virtual Status WaitForRoom() = 0;
  // Adds the mutations to the open group; returns the number of the commit that will include them.
  // `differences` are added to the counters, and `quotas` to the usage of these quotas.
  // kInvalidArgument for the store's own keys (below).
  virtual Result<uint64_t> Apply(std::vector<Mutation> mutations, const Counters& differences,
                                 const QuotaDifferences& quotas) = 0;
  Result<uint64_t> Apply(std::vector<Mutation> mutations, const Counters& differences) {
    return Apply(std::move(mutations), differences, {});
  }
  Result<uint64_t> Apply(std::vector<Mutation> mutations) {
    return Apply(std::move(mutations), Counters{});
  }
  // Joins the open group without mutations, which the caller adds later with ApplyTo. Returns the
  // commit's number.
  virtual Result<uint64_t> Join() = 0;
  // Like Apply, for an operation that joined commit `number`. kInvalidArgument unless the group of
  // this commit is open, or is closed and FlushDeferred has not returned yet.
  virtual Status ApplyTo(uint64_t number, std::vector<Mutation> mutations,
                         const Counters& differences, const QuotaDifferences& quotas) = 0;
  Status ApplyTo(uint64_t number, std::vector<Mutation> mutations, const Counters& differences) {
    return ApplyTo(number, std::move(mutations), differences, {});
  }
  // Registers `late`, which is called when a group closes. Call it before the first Join. `late`
  // must exist until EndCommits returns.
  virtual void SetDeferredChanges(DeferredChanges* late) = 0;
  // The snapshots of the store; null if this is itself the metadata of a snapshot.
  virtual SnapshotPort* snapshots() = 0;
  // The received snapshots; null like snapshots().
  virtual LineagePort* lineages() = 0;
  // The counters, including all operations applied so far.
  virtual Counters counters() const = 0;

  // Returns when commit `number` (from Apply) is durable; starts the commit if necessary.
  // kInvalidArgument for a number that no Apply has returned.
  virtual Status Commit(uint64_t number) = 0;
  // Returns when all operations applied before the call are durable.
  virtual Status CommitAll() = 0;
  // The same, but does not wait for a bucket.
  virtual Status CommitAllLocally() = 0;
  // Returns when all that is durable on the local disk is where else the store promises to bring it
  // (KvStore::AwaitShipped). Commit, CommitAll and CommitNow end with it. Call it after other
  // writes (WriteThrough, SnapshotPort, LineagePort) before a program is told that they are
  // durable, and with no lock held that a commit needs. kReadOnly if another writer has taken over:
  // then the store turns read-only. kIoError and kInterrupted while the store is being closed: then
  // the change was made, and may still be on its way.
  virtual Status AwaitShipped() = 0;
  Status CommitNow() final;

  // Begins a load of many records (KvLoad). Operations must never write their keys before the load
  // has ended. Load is like WriteThrough. After the destructor, CommittedSnapshot has all records
  // of the load that the store has. The result must be destroyed before Close.
  virtual Result<std::unique_ptr<KvLoad>> NewLoad() = 0;

  virtual uint64_t last_commit() const = 0;  // number of the last durable commit
  virtual Status failure() const = 0;  // the failure that made the store read-only; OK if none
  virtual uint64_t DiskBytes() const = 0;

  // Waits for a running commit and ends the commit thread; the participant and the DeferredChanges
  // may be destroyed afterwards. Uncommitted operations are lost. Only reads may follow.
  virtual void EndCommits() = 0;

  // Commits everything, ends the commit thread and closes the key-value store cleanly. If the
  // commit fails with kNoSpace, nothing is closed, and the caller may make room and go on. In all
  // other cases no calls may follow. After another failure the key-value store is left as after a
  // crash.
  virtual Status Close() = 0;
};

// The key of the last commit's number (little-endian, 8 bytes) in the key-value store.
inline constexpr std::string_view kCommitNumberKey = "c";

// The key of the counters (kCounterCount little-endian 8-byte numbers), written with every commit.
inline constexpr std::string_view kCountersKey = "t";

}  // namespace siltfs
