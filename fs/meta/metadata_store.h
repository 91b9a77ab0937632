// Metadata with groups and commits: the heart of the crash model (docs/crash-model.md).
//
// Operations change metadata by Apply: a list of mutations that joins the *open group*, an ordered
// map key -> value or tombstone held in memory, as one. A *commit* closes the group (a new one
// opens at once), has the participant make all data durable that the group may refer to, and then
// writes the group as one atomic synced batch together with the commit number. So after a crash the
// store holds exactly the operations up to some commit, in the order they were applied.
//
// Reading: a View pins {open group, committing group, key-value snapshot} at one moment. Values
// come newest first.
//
// Thread-safety: every call from any thread. Callers that read, decide and Apply hold their own
// locks in between. Commits happen on a thread of the store's own: when asked, when the group is
// full, and, if there is anything to commit, every commit interval and when changes pause
// (commit_pace.h). A store without changes does nothing. Concurrent Commit calls share one. Memory:
// a group grows to about `group_bytes`; WaitForRoom blocks until there is room. An operation calls
// it *before* it takes locks or applies, and never blocks between its Apply and its return. Errors:
// after a commit failed other than by kNoSpace the store is read-only for good: callers that waited
// for it are told the failure itself; later, Apply, WaitForRoom and Commit answer kReadOnly with the
// first failure's cause, and reads go on. After kNoSpace the closed group is kept and the next
// commit tries again, with the same number; callers that waited for it since before it began are
// told kNoSpace, and callers that began to wait meanwhile have it tried again.
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

#include "fs/meta/kv_store.h"

namespace siltfs {

// Makes durable what a closing group may refer to. Called on the commit thread, one commit at a
// time.
class CommitParticipant {
 public:
  virtual ~CommitParticipant() = default;
  // All data put before this call must be durable on return. `extra` collects mutations for the
  // same batch (segment records, totals); their keys must never be written by Apply. `number` is
  // the number this commit will have; after kNoSpace, here or in the batch, the call comes again
  // with the same one. May call the store's Get, Pin, counters, last_commit and WriteThrough; never
  // what waits for a commit.
  virtual Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) = 0;
  // The batch is durable, and last_commit() says so. Commit(number) returns after this call did.
  virtual void CommitDone(uint64_t number) = 0;
};

// Who accepts changes and keeps them back, to apply what is left of them when their group closes.
//
// Such an operation *joins* the open group (MetadataStore::Join) and is part of its commit as if
// applied at that moment. Its mutations follow by ApplyTo, at the latest in ApplyLate.
class LateChanges {
 public:
  virtual ~LateChanges() = default;
  // The group of commit `number` is closed: all that joined it before the call must be applied to
  // it on return. Called on the commit thread, before PrepareCommit. Operations join the next group
  // meanwhile. May call what CommitParticipant::PrepareCommit may, and ApplyTo.
  virtual Status ApplyLate(uint64_t number) = 0;
};

// Store-wide totals that operations change by differences and that are exact at every commit (their
// meanings: schema.h).
inline constexpr size_t kCounterCount = 8;
using Counters = std::array<int64_t, kCounterCount>;

struct MetadataOptions {
  size_t group_bytes = 4u << 20;  // two are in memory at a time
  std::chrono::milliseconds commit_interval{5000};
  // How long changes have to pause for a commit before the interval is over; 0: never.
  std::chrono::milliseconds quiet_interval{0};
  // A clock that never runs backwards, instead of the machine's. What is timed by it is looked at
  // again whenever its difference to a deadline has passed in real time.
  std::function<std::chrono::nanoseconds()> clock = {};
  bool read_only = false;  // Apply answers kReadOnly; no commit thread
};

// One moment of the metadata. Cheap to make; hold it no longer than one operation (it pins memory),
// and not over Close.
//
// Exactness: operations applied after the view was made are seen or not, each lookup for itself, as
// long as the group that was open then still is (or has closed, and is given its late changes); but
// a single Get or a batch of a Scan (up to 64
// entries) sees an Apply whole or not at all. What was applied before the view was made is always
// seen, and a key that no Apply touches during a Scan is visited exactly once if it is there, never
// if it is not. Keys come in strictly ascending order. Errors: those of the key-value store.
class View {
 public:
  class Source;
  explicit View(std::shared_ptr<const Source> source);

  Result<std::optional<std::string>> Get(std::string_view key) const;
  // Visits keys in [begin, end) in order until `visit` returns false; an empty `end` means no end.
  // `visit` is called with no lock held. Memory: a batch of each group, whatever the range.
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit) const;

 private:
  std::shared_ptr<const Source> source_;
};

class MetadataStore {
 public:
  // `kv` holds commit number 0 when empty. `participant` may be null (tests, read-only) and must
  // outlive the store. kCorruption if the commit number or the counters in `kv` are not such.
  static Result<std::unique_ptr<MetadataStore>> Open(std::unique_ptr<KvStore> kv,
                                                     MetadataOptions options,
                                                     CommitParticipant* participant);
  // Without Close: what was not committed is lost, and the key-value store is left as by a crash.
  virtual ~MetadataStore() = default;

  virtual View Pin() const = 0;
  // What is durable, without the groups: all of one commit, and what was written through since.
  virtual std::shared_ptr<const KvSnapshot> CommittedSnapshot() const = 0;
  // Point lookup without pinning: the newest value.
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;

  // Returns when the open group has room. A full group is closed and its commit started; the caller
  // waits only if the group before is not yet committed. kNoSpace if that one could not be, after
  // one more try.
  virtual Status WaitForRoom() = 0;
  // Joins the open group; returns the number of the commit that will carry it. `differences` are
  // added to the counters. kInvalidArgument for the keys that are the store's own (below).
  virtual Result<uint64_t> Apply(std::vector<Mutation> mutations, const Counters& differences) = 0;
  Result<uint64_t> Apply(std::vector<Mutation> mutations) {
    return Apply(std::move(mutations), Counters{});
  }
  // The number of the commit that an operation belongs to whose mutations follow by ApplyTo.
  virtual Result<uint64_t> Join() = 0;
  // Apply for what joined commit `number`: to its group, whether that is still open or waits in
  // ApplyLate. kInvalidArgument once it does not.
  virtual Status ApplyTo(uint64_t number, std::vector<Mutation> mutations,
                         const Counters& differences) = 0;
  // Who is told when a group closes: to be called before the first Join. `late` must outlive the
  // store.
  virtual void SetLateChanges(LateChanges* late) = 0;
  // As of all that was applied so far.
  virtual Counters counters() const = 0;

  // Returns when commit `number` (from Apply) is durable, starting it if need be. kInvalidArgument
  // for a number that no Apply has returned.
  virtual Status Commit(uint64_t number) = 0;
  // Returns when all that was applied before the call is durable.
  virtual Status CommitAll() = 0;
  // Writes to the key-value store at once, beside the groups: for what must be durable before it is
  // used (id ranges). The keys must never be written by Apply.
  virtual Status WriteThrough(const std::vector<Mutation>& mutations) = 0;

  virtual uint64_t last_commit() const = 0;  // the last durable one
  virtual Status failure() const = 0;        // the failure that made it read-only, if any
  virtual uint64_t DiskBytes() const = 0;

  // Ends the commit thread, when a commit that is under way has ended; whoever is told of commits
  // may go afterwards. What was not committed is lost. Nothing but reads may follow.
  virtual void EndCommits() = 0;

  // Commits everything, ends the commit thread and closes the key-value store cleanly. No call may
  // follow; but after kNoSpace nothing was closed, and the caller may make room and go on. After
  // another failure the key-value store is left as by a crash.
  virtual Status Close() = 0;
};

// The key under which the number of the last commit (little-endian, 8 bytes) stands in the
// key-value store.
inline constexpr std::string_view kCommitNumberKey = "c";

// The key of the counters (kCounterCount little-endian 8-byte numbers), written with every commit.
inline constexpr std::string_view kCountersKey = "t";

}  // namespace siltfs
