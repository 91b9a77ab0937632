#include "index/silt/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/silt/log_files.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

LogStore::Config ConfigOf(const StoreManifest& manifest, const LogRecord& log) {
  return {.id = log.id, .bucket_bits = log.bucket_bits, .hash_secret = manifest.hash_secret};
}

Result<uint64_t> NewSecret(Env& env, const SiltIndexOptions& options) {
  if (options.hash_secret) return *options.hash_secret;
  std::array<uint8_t, 8> bytes;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(bytes));
  return Decoder(bytes).U64();
}

LogRecord AddLog(StoreManifest& manifest, const SiltIndexOptions& options) {
  manifest.logs.push_back({.id = manifest.next_log_id++, .bucket_bits = options.bucket_bits});
  return manifest.logs.back();
}

Status WriteManifest(Env& env, const SiltIndexOptions& options, RecoveredStores& stores) {
  SILTFS_RETURN_IF_ERROR(WriteStoreManifest(env, options.directory, stores.manifest));
  stores.bytes_written += EncodeStoreManifest(stores.manifest).size();
  return Status::Ok();
}

Result<RecoveredStores> CreateStores(Env& env, const SiltIndexOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto logs, FindOrphanedLogs(env, options.directory, {}));
  if (!logs.empty()) {
    return Status(StatusCode::kCorruption, "has logs of a SILT index, but no manifest")
        .At(options.directory);
  }
  RecoveredStores stores;
  SILTFS_ASSIGN_OR_RETURN(stores.manifest.hash_secret, NewSecret(env, options));
  const LogRecord log = AddLog(stores.manifest, options);
  std::shared_ptr<File> file;
  if (!options.read_only) {
    // The manifest first: a log without one would be taken for damage.
    SILTFS_RETURN_IF_ERROR(WriteManifest(env, options, stores));
    SILTFS_ASSIGN_OR_RETURN(file, CreateLogFile(env, options.directory, log.id));
    SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.directory));
  }
  stores.active = std::make_shared<LogStore>(ConfigOf(stores.manifest, log), std::move(file));
  return stores;
}

// One index being opened.
class Recovery {
 public:
  Recovery(Env& env, const SiltIndexOptions& options, StoreManifest manifest)
      : env_(env), options_(options) {
    stores_.manifest = std::move(manifest);
  }

  Result<RecoveredStores> Run() {
    SILTFS_RETURN_IF_ERROR(ReplayFrozenLogs());
    SILTFS_RETURN_IF_ERROR(ReplayLastLog());
    if (!options_.read_only) {
      SILTFS_RETURN_IF_ERROR(SettleLastLog());
      if (undamaged_) SILTFS_RETURN_IF_ERROR(AcknowledgeDamage());
      SILTFS_RETURN_IF_ERROR(RemoveOrphans());
      SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(options_.directory));
    }
    return std::move(stores_);
  }

 private:
  Status ReplayFrozenLogs() {
    StoreManifest& manifest = stores_.manifest;
    const LogRecord last = manifest.logs.back();
    std::vector<LogRecord> kept;
    uint64_t complete = 0;
    for (auto log = manifest.logs.begin(); log != manifest.logs.end() - 1; ++log) {
      SILTFS_ASSIGN_OR_RETURN(auto file,
                              OpenLogFile(env_, options_.directory, log->id, OpenMode::kRead));
      // Before the table is made: a manifest may list any number of logs that are not there.
      if (file == nullptr) {
        NoteDamage(log->page_count, complete);
        continue;
      }
      auto store = std::make_shared<LogStore>(ConfigOf(manifest, *log), std::move(file));
      SILTFS_ASSIGN_OR_RETURN(auto replayed, store->Replay({.page_count = log->page_count,
                                                            .skip = log->damaged_pages,
                                                            .complete_sequence = complete}));
      complete = replayed.complete_sequence;
      if (replayed.undamaged_sequence) {
        NoteDamage(replayed.newly_damaged, *replayed.undamaged_sequence);
        log->damaged_pages = std::move(replayed.damaged_pages);
        log->page_count = replayed.valid_pages;
      }
      if (replayed.valid_pages == 0) continue;
      kept.push_back(std::move(*log));
      stores_.frozen.push_back(std::move(store));
    }
    kept.push_back(last);
    manifest.logs = std::move(kept);
    return Status::Ok();
  }

  Status ReplayLastLog() {
    const LogRecord& last = stores_.manifest.logs.back();
    const uint64_t frozen_complete = stores_.manifest.complete_sequence;
    SILTFS_ASSIGN_OR_RETURN(
        file_, OpenLogFile(env_, options_.directory, last.id,
                           options_.read_only ? OpenMode::kRead : OpenMode::kReadWrite));
    // Its name is durable from the start, but for the first log, which is made after the manifest.
    if (file_ == nullptr && !options_.read_only) {
      SILTFS_ASSIGN_OR_RETURN(file_, CreateLogFile(env_, options_.directory, last.id));
    }
    stores_.active = std::make_shared<LogStore>(ConfigOf(stores_.manifest, last), file_);
    SILTFS_ASSIGN_OR_RETURN(last_replayed_,
                            stores_.active->Replay({.complete_sequence = frozen_complete}));
    if (last_replayed_.undamaged_sequence) {
      NoteDamage(last_replayed_.newly_damaged, *last_replayed_.undamaged_sequence);
    }
    const uint64_t complete = std::max(frozen_complete, last_replayed_.complete_sequence);
    stores_.durable_sequence = undamaged_ ? std::min(*undamaged_, complete) : complete;
    return Status::Ok();
  }

  // Cuts the torn tail off, so that no old page can ever follow a new one, and makes the rest
  // durable.
  Status SettleLastLog() {
    const uint64_t valid_size = uint64_t{last_replayed_.valid_pages} * kLogPageSize;
    SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
    if (size != valid_size) SILTFS_RETURN_IF_ERROR(file_->Truncate(valid_size));
    return size == 0 ? Status::Ok() : file_->Sync();
  }

  Status AcknowledgeDamage() {
    StoreManifest& manifest = stores_.manifest;
    manifest.complete_sequence = stores_.durable_sequence;
    if (last_replayed_.valid_pages > 0) {
      manifest.logs.back().page_count = last_replayed_.valid_pages;
      manifest.logs.back().damaged_pages = last_replayed_.damaged_pages;
      stores_.frozen.push_back(stores_.active);
      const LogRecord log = AddLog(manifest, options_);
      SILTFS_ASSIGN_OR_RETURN(auto file, CreateLogFile(env_, options_.directory, log.id));
      stores_.active = std::make_shared<LogStore>(ConfigOf(manifest, log), std::move(file));
    }
    return WriteManifest(env_, options_, stores_);
  }

  Status RemoveOrphans() {
    SILTFS_ASSIGN_OR_RETURN(const auto orphans,
                            FindOrphanedLogs(env_, options_.directory, stores_.manifest));
    for (const std::string& path : orphans) SILTFS_RETURN_IF_ERROR(env_.RemoveFile(path));
    return Status::Ok();
  }

  void NoteDamage(uint32_t pages, uint64_t undamaged) {
    stores_.damaged_pages += pages;
    undamaged_ = std::min(undamaged_.value_or(undamaged), undamaged);
  }

  Env& env_;
  const SiltIndexOptions& options_;
  RecoveredStores stores_;
  std::shared_ptr<File> file_;
  LogStore::ReplayResult last_replayed_;
  std::optional<uint64_t> undamaged_;  // what is complete in spite of damage found now
};

Status CheckOptions(const SiltIndexOptions& options) {
  if (options.bucket_bits < 1 || options.bucket_bits > CuckooTable::kMaxBucketBits) {
    return {StatusCode::kInvalidArgument,
            fmt::format("a LogStore of 2^{} buckets; 1 to {} bits are possible",
                        options.bucket_bits, CuckooTable::kMaxBucketBits)};
  }
  if (options.write_batch_pages == 0 || options.write_batch_pages > options.max_log_pages ||
      options.max_log_pages >= kMaxLogPages - options.write_batch_pages) {
    return {StatusCode::kInvalidArgument,
            fmt::format("a LogStore of {} pages written {} at a time", options.max_log_pages,
                        options.write_batch_pages)};
  }
  return Status::Ok();
}

}  // namespace

Result<RecoveredStores> RecoverStores(Env& env, const SiltIndexOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckOptions(options));
  SILTFS_ASSIGN_OR_RETURN(auto manifest, ReadStoreManifest(env, options.directory));
  if (!manifest) return CreateStores(env, options);
  return Recovery(env, options, std::move(*manifest)).Run();
}

}  // namespace siltfs
