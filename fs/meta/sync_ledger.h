// The sync ledger: how much of each of RocksDB's logs was synced, and the checksum of that much.
//
// RocksDB takes the first damaged record of its log, or of its manifest, for the torn end that a
// crash may leave, and drops all behind it without a word. The ledger tells the two apart: below
// the length that was synced, bytes that are not what they were are damage (DESIGN I4, I5).
//
// It is evidence, not a promise. Its two slots are written in turn, one small write after each sync
// of a log, and are themselves synced only when a log is begun and on a clean close. So a crash may
// leave an older state of it, which is as true: what was synced of a log never changes, and before
// a name is used again its entry is withdrawn for good. A torn slot is made up for by the other; a
// ledger that is missing or has no whole slot says nothing. The bytes are in docs/format.md.
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

// Compares the files in `directory` with what the ledger at `path` says of them: kCorruption with
// the file's path where synced bytes are missing or are not what they were. A file that is gone is
// not missed. Writes nothing.
Status CheckSyncLedger(Env& env, const std::string& path, const std::string& directory);

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

  // What was synced of a file of this path is no longer to be there: called before the file is
  // made, cut off or replaced. After a failure it must not be.
  Status Withdraw(const std::string& path);
  // A log was begun.
  void Begun();
  // `length` bytes of this checksum were synced. A failure to write that down is no matter.
  void Synced(const std::string& path, uint64_t length, uint64_t checksum);
  // The file is gone, or about to be.
  void Removed(const std::string& path);
  // Makes durable what it knows, as far as the device lets it.
  void Settle();

 private:
  SyncLedger(std::unique_ptr<File> file, SyncLedgerState state);

  Status WriteSlot() SILTFS_REQUIRES(mutex_);
  Status Sync() SILTFS_REQUIRES(mutex_);
  // Leaves nothing on the device but the present entries.
  Status WriteBothSlots() SILTFS_REQUIRES(mutex_);

  struct Synchronized {
    uint64_t length;
    uint64_t checksum;
  };

  Mutex mutex_;  // nothing else is locked while it is held
  const std::unique_ptr<File> file_;
  uint64_t serial_ SILTFS_GUARDED_BY(mutex_);
  std::map<std::string, Synchronized> entries_ SILTFS_GUARDED_BY(mutex_);
  // Names that a slot may hold after a power cut, whichever of the writes survive it.
  std::set<std::string> written_ SILTFS_GUARDED_BY(mutex_);
  // A sync failed: what the device holds is unknown for good.
  bool doubtful_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
