#include "fs/repair/metadata_rebuild.h"

#include <memory>
#include <utility>

#include "fs/meta/open_kv_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/schema.h"
#include "fs/repair/record_rebuild.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr size_t kBatchBytes = 256u << 10;
constexpr uint64_t kProgressEach = 4096;  // entries

// Removes a file, or a directory with its content.
Status RemoveAll(Env& env, const std::string& path) {
  const auto info = env.GetFileInfo(path);
  if (info.status().Is(StatusCode::kNotFound)) return Status::Ok();
  if (!info.ok()) return info.status();
  if (info->type != FileType::kDirectory) return env.RemoveFile(path);
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(path));
  for (const DirectoryEntry& entry : entries)
    SILTFS_RETURN_IF_ERROR(RemoveAll(env, JoinPath(path, entry.name)));
  return env.RemoveDirectory(path);
}

// Writes many entries to a new key-value store.
class Writer {
 public:
  explicit Writer(KvStore& kv) : kv_(kv) {}

  Status Put(Mutation entry) {
    bytes_ += entry.key.size() + entry.value->size();
    entries_.push_back(std::move(entry));
    return bytes_ < kBatchBytes ? Status::Ok() : Flush();
  }
  Status Flush() {
    if (entries_.empty()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(kv_.Write(entries_));
    entries_.clear();
    bytes_ = 0;
    return Status::Ok();
  }

 private:
  KvStore& kv_;
  std::vector<Mutation> entries_;
  size_t bytes_ = 0;
};

class Rebuild {
 public:
  Rebuild(Env& env, const MetadataRebuildOptions& options)
      : env_(env), options_(options), store_(options.store) {}

  Result<RebuiltMetadata> Run() {
    SILTFS_ASSIGN_OR_RETURN(state_, ReadSuperblock(env_, store_));
    SILTFS_ASSIGN_OR_RETURN(engine_, FindMetadataEngine(state_.superblock.metadata_engine));
    SILTFS_ASSIGN_OR_RETURN(const bool there, engine_->has_files(env_, MetadataPath(store_)));
    SILTFS_ASSIGN_OR_RETURN(const bool salvaged, IsThere(env_, SalvagedMetadataPath(store_)));
    // If `meta` has files, the store may have been mounted and changed since the interrupted
    // repair. Then the result of that repair is not used, and the files are salvaged again.
    rebuilt_.resumed = salvaged && !there;
    if (!there && !salvaged) {
      return Status(StatusCode::kCorruption,
                    "holds no metadata, so the store is left unchanged: is a file system not "
                    "mounted?")
          .At(MetadataPath(store_));
    }
    if (!rebuilt_.resumed) {
      SILTFS_RETURN_IF_ERROR(RemoveRebuildLeftovers(env_, store_));
      const Status made = Make();
      if (!made.ok()) {
        RemoveRebuildLeftovers(env_, store_).IgnoreError("the next repair removes them");
        return made;
      }
      SILTFS_RETURN_IF_ERROR(Move(NewMetadataPath(store_), SalvagedMetadataPath(store_)));
    }
    SILTFS_RETURN_IF_ERROR(TakeItsPlace(there));
    rebuilt_.kept = there || rebuilt_.resumed;
    return std::move(rebuilt_);
  }

 private:
  Status Make() {
    const KvStoreOptions kv_options = {.path = NewMetadataPath(store_),
                                       .mode = KvStoreOptions::Mode::kCreate,
                                       .ledger_path = NewLedgerPath(store_),
                                       .loaded_bytes = FirstBytesOfInodes()};
    SILTFS_ASSIGN_OR_RETURN(const auto kv, engine_->open(env_, kv_options));
    SILTFS_RETURN_IF_ERROR(Fill(*kv));
    SILTFS_RETURN_IF_ERROR(kv->CloseCleanly());
    return env_.SyncDirectory(kv_options.path);
  }

  Status Fill(KvStore& kv) {
    Writer writer(kv);
    RecordRebuild records;
    uint64_t entries = 0;
    const auto visit = [&](std::string_view key, std::string_view value) {
      if (++entries % kProgressEach == 0 && options_.on_progress)
        SILTFS_RETURN_IF_ERROR(options_.on_progress(entries));
      if (!records.Keep(key, value)) return Status::Ok();
      return writer.Put({std::string(key), std::string(value)});
    };
    const KvStoreOptions damaged = MetadataOptionsOf(store_, KvStoreOptions::Mode::kReadOnly);
    SILTFS_ASSIGN_OR_RETURN(rebuilt_.salvaged, engine_->salvage(env_, damaged, visit));
    const auto segments = OpenSegmentStore(env_, store_, options_.segments);
    SILTFS_ASSIGN_OR_RETURN(std::vector<Mutation> made,
                            records.Finish(env_, store_, *segments, state_));
    for (Mutation& record : made) SILTFS_RETURN_IF_ERROR(writer.Put(std::move(record)));
    return writer.Flush();
  }

  // Renames a file or directory; durable on return.
  Status Move(const std::string& from, const std::string& to) {
    SILTFS_RETURN_IF_ERROR(env_.Rename(from, to));
    return SyncNames(env_, store_);
  }

  Status TakeItsPlace(bool there) {
    if (there) {
      SILTFS_RETURN_IF_ERROR(RemoveAll(env_, DamagedMetadataPath(store_)));
      SILTFS_RETURN_IF_ERROR(SyncNames(env_, store_));
      SILTFS_RETURN_IF_ERROR(Move(MetadataPath(store_), DamagedMetadataPath(store_)));
    }
    // If `meta` exists but has no metadata files, it holds no data. Remove it to free the name.
    if (!there) SILTFS_RETURN_IF_ERROR(RemoveAll(env_, MetadataPath(store_)));
    SILTFS_ASSIGN_OR_RETURN(const bool ledger, IsThere(env_, NewLedgerPath(store_)));
    if (ledger) SILTFS_RETURN_IF_ERROR(Move(NewLedgerPath(store_), LedgerPath(store_)));
    return Move(SalvagedMetadataPath(store_), MetadataPath(store_));
  }

  Env& env_;
  const MetadataRebuildOptions& options_;
  const std::string& store_;
  SuperblockState state_;
  const MetadataEngine* engine_ = nullptr;  // of the store, and of the new metadata
  RebuiltMetadata rebuilt_;
};

}  // namespace

Result<RebuiltMetadata> RebuildMetadata(Env& env, const MetadataRebuildOptions& options) {
  return Rebuild(env, options).Run();
}

Status RemoveRebuildLeftovers(Env& env, const std::string& store) {
  for (const std::string& path :
       {NewMetadataPath(store), NewLedgerPath(store), SalvagedMetadataPath(store)}) {
    SILTFS_RETURN_IF_ERROR(RemoveAll(env, path));
  }
  return Status::Ok();
}

}  // namespace siltfs
