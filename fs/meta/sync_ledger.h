// The sync ledger: how much of each of RocksDB's logs was synced, and the checksum of that much.
//
// RocksDB takes the first damaged record of its log, or of its manifest, for the torn end that a
// crash may leave, and drops all behind it without a word. The ledger tells the two apart: below
// the length that was synced, bytes that are not what they were are damage (DESIGN I4, I5).
//
// Of RocksDB's write-ahead log it is evidence, not a promise: one small write after each sync of
// the log, itself not synced. So a crash may leave an older state of it, which is as true: what was
// synced of a log never changes, and before a name is used again its entry is withdrawn for good.
//
// Of a MANIFEST it is a promise: its sync returns when the ledger is durable, too. So what lies
// above the ledger's length has never been acted on, and may be left unread where it is not whole:
// a torn end of a MANIFEST, which RocksDB would take for damage and refuse.
//
// Four slots: two written in turn and synced, one after the other (of the MANIFESTs' syncs), two
// written in turn and not synced. However a crash tears them, one of the first two is whole. A
// ledger that is missing or has no whole slot says nothing. Behind the slots a mark tells whether
// the ledger was closed: then all slots are whole, and one that is not has rotted. The mark is
// durably "open" before a slot is written, and "closed" only after all slots are durable. The bytes
// are in docs/format.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

struct SyncLedgerEntry {
  std::string name;     // of the file in its directory; at most kSyncLedgerNameSize bytes
  uint64_t length = 0;  // bytes synced
  uint64_t checksum = 0;

  bool operator==(const SyncLedgerEntry&) const = default;
};

struct SyncLedgerState {
  uint64_t serial = 0;                   // counts the writes
  std::vector<SyncLedgerEntry> entries;  // at most kSyncLedgerEntries

  bool operator==(const SyncLedgerState&) const = default;
};

constexpr size_t kSyncLedgerSlotSize = 4096;
constexpr size_t kSyncLedgerNameSize = 32;
constexpr size_t kSyncLedgerEntries = 84;

std::string EncodeSyncLedgerSlot(const SyncLedgerState& state);
// kCorruption unless it is a whole slot; kNeedsNewer for another version's.
Result<SyncLedgerState> DecodeSyncLedgerSlot(ByteView bytes);

// Offsets of the slots that have rotted: that are not whole though the ledger was closed, or that
// the file is too short for. None if the ledger is not there, or was not closed, as a power cut may
// tear a slot. Writes nothing.
Result<std::vector<uint64_t>> FindDamagedSlots(Env& env, const std::string& path);

// Compares the files in `directory` with what the ledger at `path` says of them: kCorruption with
// the file's path where synced bytes are missing or are not what they were. A file that is gone is
// not missed. Writes nothing. Returns what the ledger says; nothing, if it is not there or says
// nothing.
Result<SyncLedgerState> CheckSyncLedger(Env& env, const std::string& path,
                                        const std::string& directory);

// What the ledger says, of which nothing is compared; nothing if it is not there or says nothing.
Result<SyncLedgerState> ReadSyncLedger(Env& env, const std::string& path);
// Compares one file, which may be gone, as CheckSyncLedger does.
Status CheckSynced(Env& env, const std::string& directory, const SyncLedgerEntry& entry);

// Keeps the ledger of a store that is open for writing. Thread-safe.
class SyncLedger {
 public:
  // After CheckSyncLedger: makes the ledger if need be, and takes over the entries of files that
  // are there. On return the device holds those and no others. `env` must outlive the ledger.
  static Result<std::unique_ptr<SyncLedger>> Open(Env& env, const std::string& path,
                                                  const std::string& directory);

  // Whether a file of this path is one of the logs: written from its beginning to its end, synced
  // meanwhile, and never again after it was closed.
  static bool IsLog(const std::string& path);
  static bool IsManifest(const std::string& path);

  // What was synced of a file of this path is no longer to be there: called before the file is
  // made, cut off or replaced. After a failure it must not be.
  Status Withdraw(const std::string& path);
  // `length` bytes of this checksum were synced. A failure to write that down is one of the sync if
  // it is a MANIFEST's, and no matter otherwise.
  Status Synced(const std::string& path, uint64_t length, uint64_t checksum);
  // The file is gone, or about to be.
  void Removed(const std::string& path);
  // Makes durable what it knows, as far as the device lets it: when a log is begun.
  void Settle();
  // The same at the end, when nothing else is called any more; then marks the ledger as closed. A
  // power cut may take the mark.
  void Close();

 private:
  SyncLedger(Env& env, std::unique_ptr<File> file, SyncLedgerState state, size_t next_settled);

  // The present state, to be written to some slot.
  std::string NextSlot() SILTFS_REQUIRES(mutex_);
  Status WriteSlot(size_t slot) SILTFS_REQUIRES(mutex_);
  // Durably.
  Status MarkOpen() SILTFS_REQUIRES(mutex_);
  Status Sync() SILTFS_REQUIRES(mutex_);
  // Writes the older of the settled slots and syncs it.
  Status WriteSettled() SILTFS_REQUIRES(mutex_);
  // Leaves nothing on the device but the present entries.
  Status WriteAllSlots() SILTFS_REQUIRES(mutex_);
  // If a sync found the disk full: puts a new file in the ledger's place, since of this one nobody
  // knows what the device holds.
  Status ReplaceIfDoubtful() SILTFS_REQUIRES(mutex_);

  struct Synchronized {
    uint64_t length;
    uint64_t checksum;
  };

  Mutex mutex_;  // nothing else is locked while it is held
  Env& env_;
  std::unique_ptr<File> file_ SILTFS_GUARDED_BY(mutex_);
  uint64_t serial_ SILTFS_GUARDED_BY(mutex_);
  size_t next_settled_
      SILTFS_GUARDED_BY(mutex_);  // the slot to be written by the next WriteSettled
  size_t next_running_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Synchronized> entries_ SILTFS_GUARDED_BY(mutex_);
  // Names that a slot may hold after a power cut, whichever of the writes survive it.
  std::set<std::string> written_ SILTFS_GUARDED_BY(mutex_);
  // Of the first sync that failed: what the device holds of this file is unknown for good.
  StatusCode doubt_ SILTFS_GUARDED_BY(mutex_) = StatusCode::kOk;
};

}  // namespace siltfs
