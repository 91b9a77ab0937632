#include "index/silt/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// How far page number `a` is behind `b`; page numbers wrap.
int32_t PagesBehind(uint32_t a, uint32_t b) { return static_cast<int32_t>(b - a); }

Result<uint64_t> NewSecret(Env& env, const SiltIndexOptions& options) {
  if (options.hash_secret) return *options.hash_secret;
  std::array<uint8_t, 8> bytes;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(bytes));
  return Decoder(bytes).U64();
}

// One index being opened.
constexpr size_t kRewriteBytes = 256U << 10;

class Recovery {
 public:
  Recovery(Env& env, const SiltIndexOptions& options) : env_(env), options_(options) {}

  Result<RecoveredStores> Run() {
    SILTFS_ASSIGN_OR_RETURN(files_, ListStoreFiles(env_, options_.directory));
    SILTFS_ASSIGN_OR_RETURN(auto manifest, ReadStoreManifest(env_, options_.directory));
    if (manifest) {
      stores_.manifest = std::move(*manifest);
    } else {
      SILTFS_RETURN_IF_ERROR(MakeManifest());
    }
    if (stores_.manifest.entries_lost) {
      return Status(StatusCode::kCorruption, "has lost entries to damaged pages")
          .At(options_.directory);
    }
    for (const StoreFileId& file : files_) {
      stores_.manifest.next_id = std::max(stores_.manifest.next_id, file.id + 1);
    }
    stores_.durable_sequence = UINT64_MAX;
    for (uint32_t p = 0; p < stores_.manifest.partitions.size(); ++p) {
      SILTFS_RETURN_IF_ERROR(RecoverPartition(p));
    }
    if (options_.read_only) return std::move(stores_);

    SILTFS_RETURN_IF_ERROR(RemoveOrphans());
    SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(options_.directory));
    SILTFS_RETURN_IF_ERROR(LowerClaims());
    return std::move(stores_);
  }

 private:
  Status WriteManifest() {
    SILTFS_RETURN_IF_ERROR(WriteStoreManifest(env_, options_.directory, stores_.manifest));
    stores_.bytes_written += EncodeStoreManifest(stores_.manifest).size();
    return Status::Ok();
  }

  // What was put above the durable sequence is put again, or is no more and its numbers are given
  // to something else. So no partition may go on saying that it has all of that: what is put from
  // now on would count as durable before it is. On a full disk it may for once, as an index that
  // does not open would be worse.
  Status LowerClaims() {
    const uint64_t durable = stores_.durable_sequence;
    StoreManifest& manifest = stores_.manifest;
    bool lowered = false;
    for (PartitionRecord& record : manifest.partitions) {
      lowered = lowered || record.complete_sequence > durable;
      record.complete_sequence = std::min(record.complete_sequence, durable);
    }
    manifest.complete_sequence = std::min(manifest.complete_sequence, durable);
    // First: a page would take the place of one that is missing.
    if (stores_.damaged_pages > 0) {
      SILTFS_RETURN_IF_ERROR(WriteManifest());
    } else if (lowered) {
      SILTFS_RETURN_IF_ERROR(UnlessNoSpace(WriteManifest()));
    }
    for (size_t p = 0; p < stores_.partitions.size(); ++p) {
      if (log_claims_[p] <= durable) continue;
      LogStore& active = *stores_.partitions[p].active;
      SILTFS_RETURN_IF_ERROR(UnlessNoSpace(WriteClaim(active, durable)));
      manifest.partitions[p].durable_page = active.end_page() - active.sealed_tail_pages();
    }
    for (const auto& log : all_logs_) log->LowerCompleteSequence(durable);
    return Status::Ok();
  }

  // A page that says no more than it should: the last one counts.
  Status WriteClaim(LogStore& log, uint64_t complete) {
    log.SealPage(complete);
    SILTFS_RETURN_IF_ERROR(log.WriteOut());
    log.DropWritten();
    stores_.bytes_written += kPageSize;
    return log.Sync();
  }

  static Status UnlessNoSpace(Status status) {
    if (!status.Is(StatusCode::kNoSpace)) return status;
    status.IgnoreError("the next page or manifest that is written says it");
    return Status::Ok();
  }

  Status MakeManifest() {
    if (!files_.empty()) {
      return Status(StatusCode::kCorruption, "has stores of a SILT index, but no manifest")
          .At(options_.directory);
    }
    StoreManifest& manifest = stores_.manifest;
    SILTFS_ASSIGN_OR_RETURN(manifest.hash_secret, NewSecret(env_, options_));
    manifest.bucket_bits = options_.bucket_bits;
    manifest.partition_bits = options_.partition_bits;
    manifest.partitions.resize(size_t{1} << options_.partition_bits);
    // Before any log: one without a manifest would be taken for damage.
    return options_.read_only ? Status::Ok() : WriteManifest();
  }

  Status RecoverPartition(uint32_t p) {
    PartitionRecord& record = stores_.manifest.partitions[p];
    auto version = std::make_shared<PartitionVersion>();
    for (const uint64_t id : record.hash_ids) {
      const StoreFileId file{StoreKind::kHash, p, id};
      used_.insert(file);
      auto store = HashStore::Open(env_, options_.directory, file);
      if (!store.ok()) return Unusable(std::move(store).status());
      version->hashes.push_back(std::move(*store));
    }
    if (record.sorted_id != 0) {
      const StoreFileId file{StoreKind::kSorted, p, record.sorted_id};
      used_.insert(file);
      auto store =
          SortedStore::Open(env_, options_.directory, file, stores_.manifest.partition_bits);
      if (!store.ok()) return Unusable(std::move(store).status());
      version->sorted = std::move(*store);
    }
    SILTFS_RETURN_IF_ERROR(ReplayLogs(p, record, *version));
    std::shared_ptr<LogStore> active;
    SILTFS_ASSIGN_OR_RETURN(active, TakeActive(p, *version));
    stores_.partitions.push_back({.active = std::move(active), .version = std::move(version)});
    return Status::Ok();
  }

  static Status Unusable(Status why) {
    return why.Is(StatusCode::kNotFound)
               ? Status(StatusCode::kCorruption, "is missing").At(why.path())
               : why;
  }

  Status ReplayLogs(uint32_t p, PartitionRecord& record, PartitionVersion& version) {
    uint32_t page = record.first_page;
    uint64_t complete = record.complete_sequence;
    logs_.clear();
    for (const StoreFileId& file : files_) {
      if (file.kind != StoreKind::kLog || file.partition != p || file.id < record.first_log_id) {
        continue;
      }
      SILTFS_ASSIGN_OR_RETURN(auto opened, OpenStoreFile(env_, options_.directory, file, LogMode(),
                                                         /*direct=*/false));
      if (opened == nullptr) continue;
      auto log = std::make_shared<LogStore>(ConfigOf(file, page), opened);
      SILTFS_ASSIGN_OR_RETURN(const auto replayed, log->Replay());
      // What follows a hole is dropped, or it might fit in again when the hole has been filled.
      if (replayed.valid_pages == 0 && !replayed.all_valid) continue;
      used_.insert(file);
      if (!options_.read_only) {
        SILTFS_RETURN_IF_ERROR(Settle(*opened, replayed, PagesBehind(page, record.durable_page)));
      }
      if (replayed.valid_pages > 0) complete = log->complete_sequence();
      page = log->end_page();
      logs_.push_back(log);
    }
    const int32_t missing = PagesBehind(page, record.durable_page);
    uint64_t durable = std::max(complete, stores_.manifest.complete_sequence);
    if (missing > 0) {
      durable = complete;
      stores_.damaged_pages += static_cast<uint32_t>(missing);
      record.durable_page = page;
    }
    stores_.durable_sequence = std::min(stores_.durable_sequence, durable);
    const bool has_pages = page != record.first_page;
    log_claims_.push_back(has_pages ? complete : 0);
    next_page_ = page;
    for (const auto& log : logs_) version.logs.push_back(log);
    all_logs_.insert(all_logs_.end(), logs_.begin(), logs_.end());
    return Status::Ok();
  }

  // Cuts a torn tail off and makes the rest durable. What is above the `durable` first pages is
  // written once more: where the process died after a sync that failed, the machine's cache shows
  // pages that no later sync brings down.
  static Status Settle(File& file, const LogStore::ReplayResult& replayed, int32_t durable) {
    const uint64_t end = uint64_t{replayed.valid_pages} * kPageSize;
    if (!replayed.all_valid) SILTFS_RETURN_IF_ERROR(file.Truncate(end));
    Bytes pages(kRewriteBytes);
    for (uint64_t at = static_cast<uint64_t>(std::max(durable, 0)) * kPageSize; at < end;) {
      const MutableByteView piece =
          MutableByteView(pages).first(std::min<uint64_t>(pages.size(), end - at));
      SILTFS_RETURN_IF_ERROR(ReadExactly(file, at, piece));
      SILTFS_RETURN_IF_ERROR(file.Write(at, piece));
      at += piece.size();
    }
    return replayed.all_valid && replayed.valid_pages == 0 ? Status::Ok() : file.Sync();
  }

  // The last log goes on being written.
  Result<std::shared_ptr<LogStore>> TakeActive(uint32_t p, PartitionVersion& version) {
    if (!logs_.empty()) {
      version.logs.pop_back();
      return logs_.back();
    }
    const StoreFileId file{StoreKind::kLog, p, stores_.manifest.next_id++};
    std::shared_ptr<File> created;
    if (!options_.read_only) {
      SILTFS_ASSIGN_OR_RETURN(created, CreateStoreFile(env_, options_.directory, file));
    }
    return std::make_shared<LogStore>(ConfigOf(file, next_page_), std::move(created));
  }

  LogStore::Config ConfigOf(const StoreFileId& file, uint32_t first_page) const {
    return {.partition = file.partition,
            .id = file.id,
            .first_page = first_page,
            .bucket_bits = stores_.manifest.bucket_bits,
            .hash_secret = stores_.manifest.hash_secret};
  }

  OpenMode LogMode() const { return options_.read_only ? OpenMode::kRead : OpenMode::kReadWrite; }

  Status RemoveOrphans() {
    for (const StoreFileId& file : files_) {
      if (used_.contains(file)) continue;
      SILTFS_RETURN_IF_ERROR(RemoveStoreFile(env_, options_.directory, file));
    }
    return Status::Ok();
  }

  Env& env_;
  const SiltIndexOptions& options_;
  RecoveredStores stores_;
  std::vector<StoreFileId> files_;
  std::set<StoreFileId> used_;
  std::vector<std::shared_ptr<LogStore>> all_logs_;
  // Of the partitions: up to where they have all that was put, as their last pages say.
  std::vector<uint64_t> log_claims_;
  // Of the partition at hand.
  std::vector<std::shared_ptr<LogStore>> logs_;
  uint32_t next_page_ = 0;
};

Status CheckOptions(const SiltIndexOptions& options) {
  const auto refused = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, std::move(why));
  };
  if (options.bucket_bits < 1 || options.bucket_bits > kMaxBucketBits) {
    return refused(fmt::format("a LogStore of 2^{} buckets; 1 to {} bits are possible",
                               options.bucket_bits, kMaxBucketBits));
  }
  if (options.partition_bits > kMaxPartitionBits) {
    return refused(fmt::format("2^{} partitions; 2^{} are the most", options.partition_bits,
                               kMaxPartitionBits));
  }
  if (options.write_batch_pages == 0 || options.write_batch_pages > options.max_log_pages ||
      options.max_log_pages >= kMaxLogPages - options.write_batch_pages) {
    return refused(fmt::format("a LogStore of {} pages written {} at a time", options.max_log_pages,
                               options.write_batch_pages));
  }
  if (!(options.hash_store_share > 0 && options.hash_store_share < 1)) {
    return refused(fmt::format("{} of all entries in HashStores", options.hash_store_share));
  }
  if (options.max_hash_stores == 0 || options.max_frozen_logs == 0 || options.read_depth == 0 ||
      options.read_depth > ReadQueue::kMaxDepth) {
    return refused("no HashStores, frozen LogStores or reads in flight, or too many");
  }
  return Status::Ok();
}

}  // namespace

Result<RecoveredStores> RecoverStores(Env& env, const SiltIndexOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckOptions(options));
  return Recovery(env, options).Run();
}

}  // namespace siltfs
