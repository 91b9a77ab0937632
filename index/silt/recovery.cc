#include "index/silt/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "index/flash/parallel_jobs.h"
#include "index/flash/torn_tail.h"
#include "index/silt/conversion.h"
#include "index/silt/merge_policy.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kOpeningThreads = 16;  // each waits for the device most of the time

// Number of pages by which page number `a` is behind `b`; page numbers wrap.
int32_t PagesBehind(uint32_t a, uint32_t b) { return static_cast<int32_t>(b - a); }

Result<uint64_t> NewSecret(Env& env, const SiltIndexOptions& options) {
  if (options.hash_secret) return *options.hash_secret;
  std::array<uint8_t, 8> bytes;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(bytes));
  return Decoder(bytes).U64();
}

Status CheckOptions(const SiltIndexOptions& options) {
  const auto refused = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, std::move(why));
  };
  if (options.bucket_bits < 1 || options.bucket_bits > kMaxBucketBits) {
    return refused(fmt::format("LogStores have 2^{} buckets; the exponent must be 1 to {}",
                               options.bucket_bits, kMaxBucketBits));
  }
  if (options.hash_bits < NameHash::kLeastBits || options.hash_bits > NameHash::kAllBits) {
    return refused(fmt::format("hashes have {} bits; there must be {} to {}", options.hash_bits,
                               NameHash::kLeastBits, NameHash::kAllBits));
  }
  if (options.partition_bits > kMaxPartitionBits) {
    return refused(fmt::format("there are 2^{} partitions; at most 2^{} are possible",
                               options.partition_bits, kMaxPartitionBits));
  }
  if (options.write_batch_pages == 0 || options.write_batch_pages > options.max_log_pages ||
      options.max_log_pages >= kMaxLogPages - options.write_batch_pages) {
    return refused(fmt::format("LogStores of {} pages cannot be written {} at a time",
                               options.max_log_pages, options.write_batch_pages));
  }
  const double share = options.hash_store_share.value_or(0.1);
  if (!(share > 0 && share < 1)) {
    return refused(
        fmt::format("the share of entries in HashStores is {}; it must be between 0 and 1", share));
  }
  const double bytes_per_put = BytesPerPutOf(options, options.layout);
  if (!(bytes_per_put > 0 && options.most_bytes_per_put >= bytes_per_put)) {
    return refused(fmt::format("puts may write {} bytes, and at most {}", bytes_per_put,
                               options.most_bytes_per_put));
  }
  if (options.max_hash_stores == 0 || options.max_frozen_logs == 0 || options.read_depth == 0 ||
      options.read_depth > ReadQueue::kMaxDepth) {
    return refused(
        "the limits of HashStores, frozen LogStores or reads in flight are 0 or too large");
  }
  return Status::Ok();
}

Status UnlessNoSpace(Status status) {
  if (!status.Is(StatusCode::kNoSpace)) return status;
  status.IgnoreError("the next page or manifest that is written reports it");
  return Status::Ok();
}

Status Unusable(Status why) {
  return why.Is(StatusCode::kNotFound)
             ? Status(StatusCode::kCorruption, "is missing").At(why.path())
             : why;
}

}  // namespace

// --- Begin ---

Result<std::unique_ptr<Recovery>> Recovery::Begin(Env& env, const SiltIndexOptions& options,
                                                  EntryOwner* owner) {
  SILTFS_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Recovery> recovery(new Recovery(env, options, owner));
  SILTFS_RETURN_IF_ERROR(recovery->Find());
  return recovery;
}

void Recovery::BeginListing() {
  MutexLock lock(files_mutex_);
  listing_ = std::make_unique<ParallelJobs>(1, options_.background ? 1 : 0, [this](size_t) {
    auto files = ListStoreFiles(env_, options_.directory);
    if (files.ok()) files_ = std::move(*files);
    return std::move(files).status();
  });
}

Status Recovery::Find() {
  BeginListing();
  if (!options_.background) SILTFS_RETURN_IF_ERROR(NeedFiles());
  SILTFS_ASSIGN_OR_RETURN(auto manifest, manifest_log_->Read());
  if (manifest) {
    manifest_ = std::move(*manifest);
  } else {
    SILTFS_RETURN_IF_ERROR(NeedFiles());
    SILTFS_RETURN_IF_ERROR(MakeManifest());
  }
  // Layouts without further bytes hold the same data, so an index keeps the one that it was made
  // with.
  if (manifest_.layout.rest_size() != options_.layout.rest_size()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("has slots of {} bytes, not of {}", manifest_.layout.slot_size(),
                              options_.layout.slot_size()))
        .At(options_.directory);
  }
  if (manifest_.entries_lost && !options_.accept_lost_entries) {
    return Status(StatusCode::kCorruption, "has lost entries to damaged pages")
        .At(options_.directory);
  }
  states_.resize(manifest_.partitions.size());
  return Status::Ok();
}

Status Recovery::NeedFiles() {
  MutexLock lock(files_mutex_);
  return listing_->Finish();
}

Status Recovery::MakeManifest() {
  if (!files_.empty()) {
    return Status(StatusCode::kCorruption, "has stores of a SILT index, but no manifest")
        .At(options_.directory);
  }
  SILTFS_ASSIGN_OR_RETURN(manifest_.name_hash.secret, NewSecret(env_, options_));
  manifest_.name_hash.bits = options_.hash_bits;
  manifest_.bucket_bits = options_.bucket_bits;
  manifest_.partition_bits = options_.partition_bits;
  manifest_.layout = options_.layout;
  manifest_.partitions.resize(size_t{1} << options_.partition_bits);
  // Write the manifest before any log exists: a log without a manifest would look like damage.
  return options_.read_only ? Status::Ok() : manifest_log_->Replace(manifest_);
}

// --- A partition ---

Result<RecoveredPartition> Recovery::RecoverPartition(uint32_t p, unsigned bucket_bits) {
  const PartitionRecord& record = manifest_.partitions[p];
  auto version = std::make_shared<PartitionVersion>();
  version->hashes.resize(record.hash_ids.size());
  const size_t stores = record.hash_ids.size() + (record.sorted_id == 0 ? 0 : 1);
  ParallelJobs opening(stores, options_.background ? kOpeningThreads : 0,
                       [&](size_t i) { return OpenStore(p, i, *version); });
  if (!options_.background) SILTFS_RETURN_IF_ERROR(opening.Finish());
  Status replayed = ReplayLogs(p, bucket_bits, *version);
  replayed.IgnoreError("errors of the stores come first");
  SILTFS_RETURN_IF_ERROR(opening.Finish());
  SILTFS_RETURN_IF_ERROR(replayed);
  return RecoveredPartition{.active = states_[p].active, .version = std::move(version)};
}

Status Recovery::OpenStore(uint32_t p, size_t i, PartitionVersion& version) const {
  const PartitionRecord& record = manifest_.partitions[p];
  if (i < record.hash_ids.size()) {
    const StoreFileId file{StoreKind::kHash, p, record.hash_ids[i]};
    auto store = OpenConverted(env_, options_.directory, file, manifest_.partition_bits, layout());
    if (!store.ok()) return Unusable(std::move(store).status());
    version.hashes[i] = std::move(*store);
    return Status::Ok();
  }
  const StoreFileId file{StoreKind::kSorted, p, record.sorted_id};
  auto store = SortedStore::OpenWithoutIndex(env_, options_.directory, file,
                                             manifest_.partition_bits, layout());
  if (!store.ok()) return Unusable(std::move(store).status());
  version.sorted = std::move(*store);
  return Status::Ok();
}

Status Recovery::ReplayLogs(uint32_t p, unsigned bucket_bits, PartitionVersion& version) {
  SILTFS_RETURN_IF_ERROR(NeedFiles());
  const PartitionRecord& record = manifest_.partitions[p];
  State& state = states_[p];
  uint32_t page = record.first_page;
  uint64_t complete = record.complete_sequence;
  std::shared_ptr<LogStore> last;
  for (const StoreFileId& file : LogsOf(p)) {
    SILTFS_ASSIGN_OR_RETURN(const bool counts, ReplayLog(file, bucket_bits, page));
    if (!counts) continue;
    FoundLog& found = state.found.back();
    found.durable_pages =
        static_cast<uint32_t>(std::max(PagesBehind(page, record.durable_page), 0));
    if (found.replayed.valid_pages > 0) complete = found.log->complete_sequence();
    page = found.log->end_page();
    if (last != nullptr) version.logs.push_back(std::move(last));
    last = found.log;
  }
  const int32_t missing = PagesBehind(page, record.durable_page);
  uint64_t durable = std::max(complete, manifest_.complete_sequence);
  if (missing > 0) {
    if (needs_all_entries()) {
      return Status(StatusCode::kCorruption,
                    fmt::format("has lost {} pages of entries that were durable", missing))
          .At(options_.directory);
    }
    durable = complete;
    state.damaged_pages = static_cast<uint32_t>(missing);
    state.durable_page = page;
  }
  state.durable_sequence = durable;
  state.log_claim = page != record.first_page ? complete : 0;
  // The last log becomes the active one. If there is none, Finish creates it.
  const StoreFileId none{StoreKind::kLog, p, 0};
  state.active = last != nullptr
                     ? std::move(last)
                     : std::make_shared<LogStore>(ConfigOf(none, page, bucket_bits), nullptr);
  return Status::Ok();
}

std::vector<StoreFileId> Recovery::LogsOf(uint32_t p) const {
  std::vector<StoreFileId> logs;
  for (const StoreFileId& file : files_) {
    if (file.kind == StoreKind::kLog && file.partition == p &&
        file.id >= manifest_.partitions[p].first_log_id) {
      logs.push_back(file);
    }
  }
  return logs;
}

// Replays a log. Returns false if the log is not used, because its file is missing, or because its
// first page is not the partition's next page.
Result<bool> Recovery::ReplayLog(const StoreFileId& file, unsigned bucket_bits,
                                 uint32_t first_page) {
  const OpenMode mode = options_.read_only ? OpenMode::kRead : OpenMode::kReadWrite;
  FoundLog found;
  SILTFS_ASSIGN_OR_RETURN(found.file,
                          OpenStoreFile(env_, options_.directory, file, mode, /*direct=*/false));
  if (found.file == nullptr) return false;
  LogStore::Accepts accepts;
  if (owner_ != nullptr) {
    const int32_t durable =
        PagesBehind(first_page, manifest_.partitions[file.partition].durable_page);
    accepts = [this, durable](uint32_t page, const SlotEntry& entry) {
      return static_cast<int64_t>(page) < durable || IsTombstone(entry) || owner_->Holds(entry);
    };
  }
  const auto replay = [&](unsigned bits) -> Status {
    found.log = std::make_shared<LogStore>(ConfigOf(file, first_page, bits), found.file);
    SILTFS_ASSIGN_OR_RETURN(found.replayed, found.log->Replay(accepts));
    return Status::Ok();
  };
  Status replayed = replay(bucket_bits);
  // The smaller table may be too small for the log's entries.
  for (unsigned larger = bucket_bits;
       replayed.Is(StatusCode::kCorruption) && larger < kMaxBucketBits;) {
    replayed = replay(++larger);
  }
  SILTFS_RETURN_IF_ERROR(replayed);
  // Before this log, pages are missing, or its first page is damaged. So the log is not used, and
  // Finish removes it. If the file stayed, its page numbers would fit again after new pages have
  // filled the gap.
  if (found.replayed.valid_pages == 0 && !found.replayed.all_valid) return false;
  states_[file.partition].found.push_back(std::move(found));
  return true;
}

LogStore::Config Recovery::ConfigOf(const StoreFileId& file, uint32_t first_page,
                                    unsigned bucket_bits) const {
  return {.partition = file.partition,
          .id = file.id,
          .first_page = first_page,
          .bucket_bits = bucket_bits,
          .name_hash = manifest_.name_hash,
          .layout = layout()};
}

// --- Finish ---

Result<Recovery::Outcome> Recovery::Finish(const ChangeActive& change_active) {
  for (const State& state : states_) {
    durable_sequence_ = std::min(durable_sequence_, state.durable_sequence);
    damaged_pages_ += state.damaged_pages;
  }
  // FinishRead makes the manifest durable as it was read. With lost pages it is written again at
  // the end, together with the lowered claims.
  if (!options_.read_only) SILTFS_RETURN_IF_ERROR(manifest_log_->FinishRead(manifest_));
  for (const StoreFileId& file : files_) {
    manifest_.next_id = std::max(manifest_.next_id, file.id + 1);
  }
  for (size_t p = 0; p < states_.size(); ++p) {
    PartitionRecord& record = manifest_.partitions[p];
    record.durable_page = states_[p].durable_page.value_or(record.durable_page);
  }
  if (!options_.read_only) {
    for (const State& state : states_) {
      for (const FoundLog& found : state.found) SILTFS_RETURN_IF_ERROR(FinishLog(found));
    }
    SILTFS_RETURN_IF_ERROR(CreateLogs(change_active));
    SILTFS_RETURN_IF_ERROR(RemoveOrphans());
    SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(options_.directory));
    SILTFS_RETURN_IF_ERROR(LowerClaims(change_active));
  }
  bytes_written_ += manifest_log_->bytes_written();
  return Outcome{.manifest = manifest_,
                 .manifest_log = std::move(manifest_log_),
                 .durable_sequence = durable_sequence_,
                 .damaged_pages = damaged_pages_,
                 .bytes_written = bytes_written_};
}

// Cuts off a torn tail and makes the rest durable.
Status Recovery::FinishLog(const FoundLog& found) {
  const LogStore::ReplayResult& replayed = found.replayed;
  const uint64_t end = uint64_t{replayed.valid_pages} * kPageSize;
  if (!replayed.all_valid) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t zeros, CutTail(*found.file, end));
    bytes_written_ += zeros;
  }
  const uint64_t durable = uint64_t{found.durable_pages} * kPageSize;
  if (replayed.all_valid && durable >= end) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const uint64_t again, RewriteAndSync(*found.file, durable, end));
  bytes_written_ += again;
  return Status::Ok();
}

Status Recovery::CreateLogs(const ChangeActive& change_active) {
  for (uint32_t p = 0; p < states_.size(); ++p) {
    State& state = states_[p];
    if (state.active->file() != nullptr) continue;
    const StoreFileId file{StoreKind::kLog, p, manifest_.next_id++};
    SILTFS_ASSIGN_OR_RETURN(auto created, CreateStoreFile(env_, options_.directory, file));
    state.active = std::make_shared<LogStore>(
        ConfigOf(file, state.active->end_page(), state.active->bucket_bits()), std::move(created));
    change_active(p, [&](std::shared_ptr<LogStore>& active) { active = state.active; });
  }
  return Status::Ok();
}

Status Recovery::RemoveOrphans() {
  std::set<StoreFileId> used;
  for (uint32_t p = 0; p < states_.size(); ++p) {
    const PartitionRecord& record = manifest_.partitions[p];
    for (const uint64_t id : record.hash_ids) used.insert({StoreKind::kHash, p, id});
    used.insert({StoreKind::kSorted, p, record.sorted_id});
    used.insert({StoreKind::kFilter, p, record.sorted_id});
    for (const FoundLog& found : states_[p].found) used.insert(found.log->file_id());
  }
  for (const StoreFileId& file : files_) {
    if (used.contains(file)) continue;
    SILTFS_RETURN_IF_ERROR(RemoveStoreFile(env_, options_.directory, file));
  }
  return Status::Ok();
}

// Each partition claims a sequence, up to which it has all entries. Entries above the durable
// sequence are put again, or they are lost and their sequences are reused. So higher claims are
// lowered to the durable sequence. Otherwise entries put from now on would count as durable too
// early. On a full disk the claims stay, because an index that does not open would be worse.
Status Recovery::LowerClaims(const ChangeActive& change_active) {
  const uint64_t durable = durable_sequence_;
  bool lowered = false;
  for (PartitionRecord& record : manifest_.partitions) {
    lowered = lowered || record.complete_sequence > durable;
    record.complete_sequence = std::min(record.complete_sequence, durable);
  }
  manifest_.complete_sequence = std::min(manifest_.complete_sequence, durable);
  // If durable pages are missing, the page that WriteClaim appends takes the number of the first
  // missing page. So the manifest must first record that the log ends there.
  if (damaged_pages_ > 0) {
    SILTFS_RETURN_IF_ERROR(manifest_log_->Replace(manifest_));
  } else if (lowered) {
    SILTFS_RETURN_IF_ERROR(UnlessNoSpace(manifest_log_->Replace(manifest_)));
  }
  for (uint32_t p = 0; p < states_.size(); ++p) {
    if (states_[p].log_claim <= durable) continue;
    SILTFS_RETURN_IF_ERROR(UnlessNoSpace(WriteClaim(p, durable, change_active)));
  }
  for (const State& state : states_) {
    for (const FoundLog& found : state.found) found.log->LowerCompleteSequence(durable);
  }
  return Status::Ok();
}

// Appends a page with the lowered claim, because a recovery takes the claim from a log's last page.
Status Recovery::WriteClaim(uint32_t p, uint64_t complete, const ChangeActive& change_active) {
  LogStore& log = *states_[p].active;
  change_active(p, [&](std::shared_ptr<LogStore>& active) { active->SealPage(complete); });
  SILTFS_RETURN_IF_ERROR(log.WriteOut());
  change_active(p, [](std::shared_ptr<LogStore>& active) { active->DropWritten(); });
  bytes_written_ += kPageSize;
  return log.Sync();
}

}  // namespace siltfs
