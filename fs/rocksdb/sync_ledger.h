// The sync ledger: the synced length of each of RocksDB's logs, and the checksum of these bytes.
//
// RocksDB treats the first damaged record of its log or MANIFEST as a torn end after a crash and
// silently drops everything after it. The ledger distinguishes damage from a torn end: changed
// bytes below the synced length are damage (docs/crash-model.md, I4 and I5).
//
// Write-ahead logs: the ledger may be older than the log. It is updated by one small unsynced write
// after each sync of the log, so a crash may leave an older state. The older state is still true:
// synced bytes of a log never change. Before a log's file name is used for another file, its entry
// is removed from the ledger, and the removal is durable.
//
// MANIFESTs: the ledger is never older than an acknowledged sync. The sync returns when the ledger
// is durable, too, so nothing depends on bytes above the length in the ledger. RocksDB refuses a
// MANIFEST with a torn tail as damaged. So if RocksDB refuses a MANIFEST, OpenRocksDbStore tries
// again and lets RocksDB read only the bytes up to the length in the ledger.
//
// The file has four slots. Slots 0 and 1 are written in turn, for MANIFEST syncs, and each is
// synced before the other is written. Slots 2 and 3 are written in turn and not synced. After any
// crash, slot 0 or slot 1 is whole. A ledger that is missing or has no whole slot is ignored. After
// the slots, a mark says whether the ledger was closed. All slots of a closed ledger were whole, so
// a slot of it that is not whole is damaged. The mark is durably "open" before a slot is written,
// and "closed" only after all slots are durable. Encoding: docs/format.md.
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
// Returns the state in a slot. kCorruption if the slot is not whole; kNeedsNewer if it has another
// version.
Result<SyncLedgerState> DecodeSyncLedgerSlot(ByteView bytes);

// Returns the offsets of the damaged slots: slots that are not whole although the ledger was
// closed, and slots beyond the end of the file. Other slots of a ledger that was not closed are not
// reported, because a power cut may tear a slot. Empty if the ledger does not exist. Writes
// nothing.
Result<std::vector<uint64_t>> FindDamagedSlots(Env& env, const std::string& path);

// Compares the files in `directory` with the ledger at `path`: kCorruption with the file's path if
// synced bytes are missing or changed. A missing file is no error. Writes nothing. Returns the
// ledger's state, which is empty if the ledger is missing or has no whole slot.
Result<SyncLedgerState> CheckSyncLedger(Env& env, const std::string& path,
                                        const std::string& directory);

// The ledger's state, without comparing files; empty if the ledger is missing or has no whole slot.
Result<SyncLedgerState> ReadSyncLedger(Env& env, const std::string& path);
// Compares one file, which may be missing, like CheckSyncLedger.
Status CheckSynced(Env& env, const std::string& directory, const SyncLedgerEntry& entry);

// Maintains the ledger of a store that is open for writing. Thread-safe.
class SyncLedger {
 public:
  // Call after CheckSyncLedger. Creates the ledger if necessary and keeps the entries of existing
  // files; on return the device holds only these entries. `env` must outlive the ledger.
  static Result<std::unique_ptr<SyncLedger>> Open(Env& env, const std::string& path,
                                                  const std::string& directory);

  // Whether this is the path of a log, which includes MANIFESTs. A log is written sequentially, is
  // synced between writes, and is never written after it was closed.
  static bool IsLog(const std::string& path);
  static bool IsManifest(const std::string& path);

  // Withdraws the entry of this path. Call before the file is created, truncated or replaced; after
  // a failure the file must be left as it is.
  Status Withdraw(const std::string& path);
  // Records that `length` bytes with this checksum were synced. A failure to record them fails the
  // sync of a MANIFEST and is ignored for other logs.
  Status Synced(const std::string& path, uint64_t length, uint64_t checksum);
  // Drops the entry of a file that was removed, or is about to be removed.
  void Removed(const std::string& path);
  // Makes the entries durable, if the device allows it. Called when a log is begun.
  void MakeDurable();
  // Makes the entries durable, and then marks the ledger as closed. No calls may follow. A power
  // cut may lose the mark.
  void Close();

 private:
  SyncLedger(Env& env, std::unique_ptr<File> file, SyncLedgerState state, size_t next_durable);

  // Returns the encoded current state, to be written to a slot.
  std::string NextSlot() SILTFS_REQUIRES(mutex_);
  Status WriteSlot(size_t slot) SILTFS_REQUIRES(mutex_);
  // Marks the ledger as open; returns when the mark is durable.
  Status MarkOpen() SILTFS_REQUIRES(mutex_);
  Status Sync() SILTFS_REQUIRES(mutex_);
  // Writes the older of the two synced slots and syncs it.
  Status WriteDurableSlot() SILTFS_REQUIRES(mutex_);
  // Leaves only the current entries on the device.
  Status WriteAllSlots() SILTFS_REQUIRES(mutex_);
  // If a sync found the disk full, replaces the ledger's file, because the old file's content on
  // the device is unknown.
  Status ReplaceIfDoubtful() SILTFS_REQUIRES(mutex_);

  struct Synchronized {
    uint64_t length;
    uint64_t checksum;
  };

  Mutex mutex_;  // nothing else is locked while it is held
  Env& env_;
  std::unique_ptr<File> file_ SILTFS_GUARDED_BY(mutex_);
  uint64_t serial_ SILTFS_GUARDED_BY(mutex_);
  size_t next_durable_ SILTFS_GUARDED_BY(mutex_);  // the slot that the next WriteDurableSlot writes
  size_t next_running_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Synchronized> entries_ SILTFS_GUARDED_BY(mutex_);
  // Names that some slot may hold after a power cut, whichever writes survive.
  std::set<std::string> written_ SILTFS_GUARDED_BY(mutex_);
  // Code of the first failed sync: from then on this file's content on the device is unknown.
  StatusCode doubt_ SILTFS_GUARDED_BY(mutex_) = StatusCode::kOk;
};

}  // namespace siltfs
