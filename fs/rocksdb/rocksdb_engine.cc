#include "fs/rocksdb/rocksdb_engine.h"

#include "fs/rocksdb/metadata_salvage.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "fs/rocksdb/sync_ledger.h"

namespace siltfs {
namespace {

// Compares the store's files with the ledger, and checks the ledger's slots. Any crash leaves a
// whole slot. Without a whole slot, damage in the logs cannot be distinguished from a torn tail.
Status FindToleratedDamage(Env& env, const KvStoreOptions& options,
                           const std::function<void(const Status&)>& report) {
  const std::string& path = options.ledger_path;
  SILTFS_ASSIGN_OR_RETURN(const SyncLedgerState state, CheckSyncLedger(env, path, options.path));
  if (state.serial == 0) {
    report(Status(StatusCode::kCorruption, "there is no whole slot in the sync ledger").At(path));
    return Status::Ok();
  }
  SILTFS_ASSIGN_OR_RETURN(const auto slots, FindDamagedSlots(env, path));
  for (const uint64_t slot : slots) {
    report(Status(StatusCode::kCorruption,
                  "a slot of the sync ledger is damaged; the other slots suffice, and the next "
                  "mount rewrites it")
               .At(path, slot));
  }
  return Status::Ok();
}

Result<MetadataSalvage> Salvage(
    Env& env, const KvStoreOptions& options,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return SalvageMetadata(env, options.path, options.ledger_path, visit);
}

// All mutations of a write go into the same write buffer, so a write must be smaller than a buffer.
uint64_t MostWriteBytes(uint64_t disk_bytes) { return MetadataBufferBytes(disk_bytes) / 2; }

}  // namespace

constinit const MetadataEngine kRocksDbEngine = {.name = "rocksdb",
                                                 .open = OpenRocksDbStore,
                                                 .find_tolerated_damage = FindToleratedDamage,
                                                 .has_files = HasMetadataFiles,
                                                 .salvage = Salvage,
                                                 .most_write_bytes = MostWriteBytes};

}  // namespace siltfs
