#include "fs/meta/rocksdb_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

#include "fs/meta/rocksdb_env.h"
#include "fs/meta/sync_ledger.h"
#include "store/base/thread_annotations.h"
#include "store/env/files.h"

namespace siltfs {

namespace {

constexpr uint64_t kLeastWriteBufferBytes = 512u << 10;
constexpr uint64_t kMostWriteBufferBytes = 4u << 20;
constexpr uint64_t kWriteBufferShare = 128;  // of the disk
// Sizes of tables, and of the first level that holds more than what was flushed.
constexpr uint64_t kBuffersPerTable = 2;
constexpr int kTablesToCompact = 4;  // of those that were flushed
constexpr int kTablesToCompactOnSmallDisk = 2;
constexpr uint64_t kBuffersPerLevel = 8;
constexpr size_t kBlockCacheBytes = 6u << 20;
constexpr const char* kNeverPresentKey = "";  // below all others; nobody writes it

Status StatusFrom(const rocksdb::Status& status, const std::string& path) {
  if (status.ok()) return Status::Ok();
  StatusCode code = StatusCode::kIoError;
  if (status.IsNoSpace()) {
    code = StatusCode::kNoSpace;
  } else if (status.IsCorruption()) {
    code = StatusCode::kCorruption;
  } else if (status.IsMemoryLimit()) {
    code = StatusCode::kOutOfMemory;
  } else if (status.IsInvalidArgument()) {
    code = StatusCode::kInvalidArgument;
  } else if (status.IsAborted() || status.IsShutdownInProgress()) {
    code = StatusCode::kAborted;
  }
  std::string cause = "the metadata store says: " + status.ToString();
  if (code == StatusCode::kNoSpace)
    cause += "; free space on the disk that holds it, then mount again";
  return Status(code, std::move(cause)).At(path);
}

// RocksDB's own log would otherwise lie in the store.
class SilentLogger final : public rocksdb::Logger {
 public:
  SilentLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::HEADER_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

// What RocksDB's background threads report. Keeps RocksDB from resuming by itself after an error,
// and remembers that it has to be told to.
class BackgroundListener final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    NoteEvent();
  }
  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    NoteEvent();
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    // Where there was no room for the next log, RocksDB takes the last one for torn, and never
    // resumes. Here a log is synced with each write: nothing of it was left in memory.
    if (reason == rocksdb::BackgroundErrorReason::kMemTable && error->IsNoSpace()) {
      *error = rocksdb::Status(*error, rocksdb::Status::Severity::kHardError);
    }
    MutexLock lock(mutex_);
    ++events_;
    error_ = *error;
    changed_.NotifyAll();
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

  // The last error that nobody has had RocksDB resume after.
  rocksdb::Status error() const {
    MutexLock lock(mutex_);
    return error_;
  }
  void SetError(const rocksdb::Status& error) {
    MutexLock lock(mutex_);
    error_ = error;
  }
  uint64_t events() const {
    MutexLock lock(mutex_);
    return events_;
  }
  // Returns when a flush began or ended or there was an error since events() said `seen`.
  void WaitForEventAfter(uint64_t seen) const {
    MutexLock lock(mutex_);
    while (events_ == seen) changed_.Wait(mutex_);
  }

 private:
  void NoteEvent() {
    MutexLock lock(mutex_);
    ++events_;
    changed_.NotifyAll();
  }

  mutable Mutex mutex_;  // taken by RocksDB's threads: nothing is called while it is held
  mutable CondVar changed_;
  uint64_t events_ SILTFS_GUARDED_BY(mutex_) = 0;
  rocksdb::Status error_ SILTFS_GUARDED_BY(mutex_);
};

// What lives as long as anything that reads: the database, and what its options point to.
struct Database {
  Database(Env& on, std::string at, std::unique_ptr<SyncLedger> with, ManifestLengths lengths)
      : env(on),
        path(std::move(at)),
        ledger(std::move(with)),
        rocksdb_env(NewRocksDbEnv(env, ledger.get(), std::move(lengths))) {}

  Env& env;
  const std::string path;
  bool read_only = false;
  uint64_t write_buffer_bytes = kMostWriteBufferBytes;
  const std::unique_ptr<SyncLedger> ledger;  // null: none is kept
  const std::unique_ptr<rocksdb::Env> rocksdb_env;
  std::shared_ptr<BackgroundListener> background = std::make_shared<BackgroundListener>();
  std::unique_ptr<rocksdb::DB> db;
};

Result<std::optional<std::string>> GetFrom(const Database& database,
                                           const rocksdb::Snapshot* snapshot,
                                           std::string_view key) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  const rocksdb::Status status =
      database.db->Get(options, database.db->DefaultColumnFamily(), key, &value);
  if (status.ok()) return std::optional<std::string>(std::move(value));
  if (status.IsNotFound()) return std::optional<std::string>();
  return StatusFrom(status, database.path);
}

class RocksDbIterator final : public KvIterator {
 public:
  RocksDbIterator(const Database& database, const rocksdb::Snapshot* snapshot, std::string_view end)
      : path_(database.path), end_(end), end_slice_(end_) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    iterator_.reset(database.db->NewIterator(options));
  }

  void Seek(std::string_view key) override { iterator_->Seek(key); }
  void Next() override { iterator_->Next(); }
  bool Valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return iterator_->key().ToStringView(); }
  std::string_view value() const override { return iterator_->value().ToStringView(); }
  Status status() const override { return StatusFrom(iterator_->status(), path_); }

 private:
  const std::string path_;
  const std::string end_;
  const rocksdb::Slice end_slice_;  // RocksDB keeps a pointer to it
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksDbSnapshot final : public KvSnapshot {
 public:
  explicit RocksDbSnapshot(std::shared_ptr<const Database> database)
      : database_(std::move(database)), snapshot_(database_->db->GetSnapshot()) {}
  // A database opened read-only has no snapshots to give, and does not change.
  ~RocksDbSnapshot() override {
    if (snapshot_ != nullptr) database_->db->ReleaseSnapshot(snapshot_);
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return GetFrom(*database_, snapshot_, key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<RocksDbIterator>(*database_, snapshot_, end);
  }

 private:
  const std::shared_ptr<const Database> database_;
  const rocksdb::Snapshot* const snapshot_;
};

// How large a batch will be: a batch that grows as it is filled takes up to three times its size
// meanwhile.
class SizeSink final : public MutationSink {
 public:
  void Put(std::string_view key, std::string_view value) override {
    bytes_ += kEntryHeader + key.size() + value.size();
  }
  void Remove(std::string_view key) override { bytes_ += kEntryHeader + key.size(); }

  size_t bytes() const { return kBatchHeader + bytes_; }

 private:
  static constexpr size_t kBatchHeader = 12;
  static constexpr size_t kEntryHeader = 1 + 2 * 5;  // a tag, and lengths of five bytes at most

  size_t bytes_ = 0;
};

class BatchSink final : public MutationSink {
 public:
  explicit BatchSink(size_t bytes) : batch_(bytes) {}

  void Put(std::string_view key, std::string_view value) override { Keep(batch_.Put(key, value)); }
  void Remove(std::string_view key) override { Keep(batch_.Delete(key)); }

  rocksdb::WriteBatch& batch() { return batch_; }
  const rocksdb::Status& status() const { return status_; }

 private:
  void Keep(const rocksdb::Status& status) {
    if (status_.ok()) status_ = status;
  }

  rocksdb::WriteBatch batch_;
  rocksdb::Status status_;
};

class RocksDbStore final : public KvStore {
 public:
  explicit RocksDbStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return GetFrom(*database_, nullptr, key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override {
    return std::make_shared<RocksDbSnapshot>(database_);
  }
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override;
  Status VerifyChecksums() const override;
  uint64_t LoggedChanges() const override;
  uint64_t DiskBytes() const override;
  Status CloseCleanly() override;

 private:
  Status WriteBatch(rocksdb::WriteBatch& batch) SILTFS_REQUIRES(mutex_);
  Status PrepareToWrite() SILTFS_REQUIRES(mutex_);
  Status KeepMemoryOccupied() SILTFS_REQUIRES(mutex_);
  // What RocksDB answered. A full disk is remembered, as RocksDB has to resume after it.
  Status Heed(const rocksdb::Status& answer) SILTFS_REQUIRES(mutex_);
  // After a background error: kNoSpace is overcome if there is room now; another is the answer.
  Status ResumeIfFull() SILTFS_REQUIRES(mutex_);
  // The kNoSpace to resume after, which the listener has then forgotten; an error if that has
  // become another.
  Result<rocksdb::Status> TakeErrorToResumeAfter() SILTFS_REQUIRES(mutex_);
  // Less than this is left on the disk, as far as anyone knows.
  bool SpaceIsShort(uint64_t bytes) const;
  Status FlushAll() SILTFS_REQUIRES(mutex_);
  // Returns when this property, which changes with flushes, is 0, or with what keeps them from
  // going on.
  Status WaitUntilNone(const std::string& property) SILTFS_REQUIRES(mutex_);

  const std::shared_ptr<Database> database_;
  Mutex mutex_;  // one write at a time: what a failed one means for the next must be known
  Status failure_ SILTFS_GUARDED_BY(mutex_);  // after it nothing is written any more
};

Status RocksDbStore::WriteFrom(const std::function<void(MutationSink&)>& fill) {
  if (database_->read_only) {
    return Status(StatusCode::kReadOnly, "the metadata store was opened read-only")
        .At(database_->path);
  }
  SizeSink size;
  fill(size);
  BatchSink sink(size.bytes());
  fill(sink);
  if (!sink.status().ok()) return StatusFrom(sink.status(), database_->path);
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  Status written = WriteBatch(sink.batch());
  if (!written.ok() && !written.Is(StatusCode::kNoSpace)) {
    failure_ = written;
    failure_.IgnoreError("kept for later writes");
  }
  return written;
}

// Resume begins a new log only where it has something in memory to flush. Else the next write would
// go on behind a torn one, upon which RocksDB aborts the process, or refuses everything for good.
// So there always is something in memory: the removal of a key that never was, which no log holds.
Status RocksDbStore::KeepMemoryOccupied() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  // Begins the next write buffer if one is full.
  SILTFS_RETURN_IF_ERROR(Heed(database_->db->Delete(options, kNeverPresentKey)));
  // Were the log to meet a full disk before the flush of a full buffer has begun, RocksDB would
  // forget that flush, and Resume would wait for it for good.
  return WaitUntilNone(rocksdb::DB::Properties::kMemTableFlushPending);
}

Status RocksDbStore::PrepareToWrite() {
  SILTFS_RETURN_IF_ERROR(ResumeIfFull());
  const Status prepared = KeepMemoryOccupied();
  if (!prepared.Is(StatusCode::kNoSpace)) return prepared;
  // What began in the background on a disk that was full may say so only now.
  SILTFS_RETURN_IF_ERROR(ResumeIfFull());
  return KeepMemoryOccupied();
}

Status RocksDbStore::WriteBatch(rocksdb::WriteBatch& batch) {
  SILTFS_RETURN_IF_ERROR(PrepareToWrite());
  rocksdb::WriteOptions options;
  options.sync = true;
  return Heed(database_->db->Write(options, &batch));
}

Status RocksDbStore::Heed(const rocksdb::Status& answer) {
  const rocksdb::Status known = database_->background->error();
  // A write that had to wait for a flush, and for which the wait ended with an error, has that only
  // as text.
  if (answer.IsIncomplete() && known.IsNoSpace()) return StatusFrom(known, database_->path);
  if (answer.IsNoSpace() && known.ok()) database_->background->SetError(answer);
  return StatusFrom(answer, database_->path);
}

Status RocksDbStore::ResumeIfFull() {
  const rocksdb::Status known = database_->background->error();
  if (!known.IsNoSpace()) return StatusFrom(known, database_->path);
  // Where what is in memory could not be flushed, Resume may wait for a flush that nobody has
  // begun.
  if (SpaceIsShort(database_->write_buffer_bytes)) return StatusFrom(known, database_->path);
  SILTFS_ASSIGN_OR_RETURN(const rocksdb::Status error, TakeErrorToResumeAfter());
  // Flushes what is in memory and starts a new log, so that nothing follows the torn end of the old
  // one.
  const rocksdb::Status resumed = database_->db->Resume();
  if (!resumed.ok()) database_->background->SetError(error);
  return StatusFrom(resumed, database_->path);
}

// RocksDB tells of an error in the background before it heeds it, and until then would find nothing
// to resume after. With nothing running there it has, and nothing new can be told: an error
// forgotten while RocksDB stands by it would fail everything for good.
Result<rocksdb::Status> RocksDbStore::TakeErrorToResumeAfter() {
  SILTFS_RETURN_IF_ERROR(StatusFrom(database_->db->PauseBackgroundWork(), database_->path));
  const rocksdb::Status error = database_->background->error();
  if (error.IsNoSpace()) database_->background->SetError(rocksdb::Status::OK());
  SILTFS_RETURN_IF_ERROR(StatusFrom(database_->db->ContinueBackgroundWork(), database_->path));
  if (!error.IsNoSpace()) return StatusFrom(error, database_->path);
  return error;
}

bool RocksDbStore::SpaceIsShort(uint64_t bytes) const {
  const auto space = database_->env.GetDiskSpace(database_->path);
  return space.ok() && space->available_bytes < bytes;
}

Status RocksDbStore::FlushAll() {
  SILTFS_RETURN_IF_ERROR(Heed(database_->db->Flush(rocksdb::FlushOptions())));
  // After an error and Resume, RocksDB 7.8 returns from Flush too early.
  return WaitUntilNone(rocksdb::DB::Properties::kNumImmutableMemTable);
}

Status RocksDbStore::WaitUntilNone(const std::string& property) {
  while (true) {
    const uint64_t seen = database_->background->events();
    const rocksdb::Status error = database_->background->error();
    uint64_t count = 0;
    const bool none = !database_->db->GetIntProperty(property, &count) || count == 0;
    // A compaction that met a full disk keeps no flush from going on.
    if (none && (error.ok() || error.IsNoSpace())) return Status::Ok();
    if (!error.ok()) return StatusFrom(error, database_->path);
    database_->background->WaitForEventAfter(seen);
  }
}

// Block by block, which tells where the damage is; but there are blocks that RocksDB then leaves
// out (filters in parts), so each file as a whole, too.
Status RocksDbStore::VerifyChecksums() const {
  rocksdb::Status verified = database_->db->VerifyChecksum();
  if (verified.ok()) verified = database_->db->VerifyFileChecksums(rocksdb::ReadOptions());
  return StatusFrom(verified, database_->path);
}

// A log is replayed into memory, and from there nothing goes to disk in a database opened
// read-only.
uint64_t RocksDbStore::LoggedChanges() const {
  uint64_t sum = 0;
  for (const std::string& property : {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
                                      rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    uint64_t entries = 0;
    if (database_->db->GetIntProperty(property, &entries)) sum += entries;
  }
  return sum;
}

uint64_t RocksDbStore::DiskBytes() const {
  const auto files = database_->env.ListDirectory(database_->path);
  if (!files.ok()) {
    // A figure for people; without the directory, what RocksDB has in mind.
    uint64_t bytes = 0;
    database_->db->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &bytes);
    return bytes;
  }
  uint64_t bytes = 0;
  for (const DirectoryEntry& file : *files) {
    const auto info = database_->env.GetFileInfo(JoinPath(database_->path, file.name));
    if (info.ok()) bytes += info->size;  // else it was removed meanwhile
  }
  return bytes;
}

Status RocksDbStore::CloseCleanly() {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (!database_->read_only) {
    SILTFS_RETURN_IF_ERROR(ResumeIfFull());
    // Leaves an empty log behind; the old ones are deleted with it or by Close.
    Status flushed = FlushAll();
    if (flushed.Is(StatusCode::kNoSpace)) {
      // As in PrepareToWrite: a full disk of the past may be told only now.
      SILTFS_RETURN_IF_ERROR(ResumeIfFull());
      flushed = FlushAll();
    }
    SILTFS_RETURN_IF_ERROR(flushed);
  }
  SILTFS_RETURN_IF_ERROR(StatusFrom(database_->db->Close(), database_->path));
  if (database_->ledger != nullptr) database_->ledger->Close();
  // RocksDB does not make it durable that the old logs are gone.
  return database_->read_only ? Status::Ok() : database_->env.SyncDirectory(database_->path);
}

rocksdb::BlockBasedTableOptions TableOptions() {
  rocksdb::BlockBasedTableOptions table;
  rocksdb::LRUCacheOptions cache;
  cache.capacity = kBlockCacheBytes;
  cache.num_shard_bits = 2;
  cache.strict_capacity_limit = false;
  cache.high_pri_pool_ratio = 0.5;
  table.block_cache = rocksdb::NewLRUCache(cache);
  table.block_size = 8u << 10;
  // Index and filter in pages of the block cache: whole ones would outgrow it with the store.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_top_level_index_and_filter = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = 4096;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // Readable by RocksDB 7.8 (Debian 12) whichever wrote it.
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;  // the one that table_check.cc knows
  return table;
}

rocksdb::Options DatabaseOptions(const RocksDbOptions& options, Database& database) {
  rocksdb::Options db;
  db.env = database.rocksdb_env.get();
  db.info_log = std::make_shared<SilentLogger>();
  db.listeners.push_back(database.background);
  db.create_if_missing = options.mode == RocksDbOptions::Mode::kCreate;
  db.error_if_exists = options.mode == RocksDbOptions::Mode::kCreate;

  // Safety.
  db.paranoid_checks = true;
  // A torn end of the log is what a crash leaves. What is damaged below it the sync ledger tells.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.track_and_verify_wals_in_manifest = true;
  // Kept in the MANIFEST, for VerifyChecksums; a file that was made without has none.
  db.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  db.max_bgerror_resume_count = 0;  // a failed sync is never tried again behind our back

  // Memory.
  db.write_buffer_size = database.write_buffer_bytes;
  db.max_write_buffer_number = 2;
  db.max_open_files = 128;
  db.max_file_opening_threads = 1;
  db.writable_file_max_buffer_size = 256u << 10;
  db.compaction_readahead_size = 128u << 10;
  db.max_background_jobs = 2;  // one flush, one compaction
  db.max_subcompactions = 1;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;

  // Shape on disk. Small files keep a compaction's need of free space small.
  db.max_manifest_file_size = 1u << 20;
  // On a small disk what was overwritten goes early.
  db.level0_file_num_compaction_trigger =
      database.write_buffer_bytes < kMostWriteBufferBytes ? kTablesToCompactOnSmallDisk
                                                          : kTablesToCompact;
  db.level_compaction_dynamic_level_bytes = true;
  db.max_bytes_for_level_base = kBuffersPerLevel * database.write_buffer_bytes;
  db.target_file_size_base = kBuffersPerTable * database.write_buffer_bytes;
  db.compression = rocksdb::kLZ4Compression;
  db.bottommost_compression = rocksdb::kZSTD;
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions()));
  return db;
}

Status OpenStatus(Env& env, const rocksdb::Status& status, const RocksDbOptions& options) {
  Status result = StatusFrom(status, options.path);
  // RocksDB 9 wraps what keeps it from writing its options down, and forgets the kind.
  if (result.Is(StatusCode::kIoError) &&
      result.cause().find("No space left on device") != std::string_view::npos) {
    return Status(StatusCode::kNoSpace, std::string(result.cause())).At(options.path);
  }
  if (!status.IsInvalidArgument() && !status.IsNotFound() && !status.IsPathNotFound())
    return result;
  if (options.mode != RocksDbOptions::Mode::kCreate &&
      env.GetFileInfo(JoinPath(options.path, "CURRENT")).ok()) {
    // There is one, and a file of it is not there, or says what cannot be.
    result.IgnoreError("said as what it is");
    return Status(StatusCode::kCorruption, "the metadata store says: " + status.ToString())
        .At(options.path);
  }
  result.IgnoreError("said better below");
  if (options.mode == RocksDbOptions::Mode::kCreate) {
    return Status(StatusCode::kAlreadyExists, "there is a metadata store already").At(options.path);
  }
  return Status(StatusCode::kNotFound, "no metadata store here: " + status.ToString())
      .At(options.path);
}

// One attempt; MANIFESTs are read as far as `lengths` says.
Result<std::unique_ptr<KvStore>> OpenOnce(Env& env, const RocksDbOptions& options,
                                          ManifestLengths lengths) {
  const bool read_only = options.mode == RocksDbOptions::Mode::kReadOnly;
  std::unique_ptr<SyncLedger> ledger;
  if (!options.ledger_path.empty() && !read_only) {
    SILTFS_ASSIGN_OR_RETURN(ledger, SyncLedger::Open(env, options.ledger_path, options.path));
  }
  auto database =
      std::make_shared<Database>(env, options.path, std::move(ledger), std::move(lengths));
  database->read_only = read_only;
  const auto disk = env.GetDiskSpace(options.path);
  if (disk.ok()) database->write_buffer_bytes = MetadataBufferBytes(disk->total_bytes);
  const rocksdb::Options db_options = DatabaseOptions(options, *database);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = read_only
                                     ? rocksdb::DB::OpenForReadOnly(db_options, options.path, &db)
                                     : rocksdb::DB::Open(db_options, options.path, &db);
  if (!status.ok()) return OpenStatus(env, status, options);
  database->db.reset(db);
  return std::unique_ptr<KvStore>(std::make_unique<RocksDbStore>(std::move(database)));
}

}  // namespace

uint64_t MetadataBufferBytes(uint64_t disk_bytes) {
  return std::clamp(disk_bytes / kWriteBufferShare, kLeastWriteBufferBytes, kMostWriteBufferBytes);
}

Result<std::unique_ptr<KvStore>> OpenRocksDbStore(Env& env, const RocksDbOptions& options) {
  ManifestLengths lengths;
  if (!options.ledger_path.empty()) {
    SILTFS_ASSIGN_OR_RETURN(const SyncLedgerState state,
                            CheckSyncLedger(env, options.ledger_path, options.path));
    for (const SyncLedgerEntry& entry : state.entries) {
      if (SyncLedger::IsManifest(entry.name)) lengths[entry.name] = entry.length;
    }
  }
  // RocksDB, and the ledger, would begin anew.
  const std::string current = JoinPath(options.path, "CURRENT");
  if (options.mode != RocksDbOptions::Mode::kCreate &&
      env.GetFileInfo(current).status().Is(StatusCode::kNotFound)) {
    return Status(StatusCode::kNotFound, "no metadata store here: there is no CURRENT")
        .At(options.path);
  }
  // A MANIFEST that is whole is read to its end, whatever the ledger says, which may have rotted.
  auto opened = OpenOnce(env, options, {});
  if (lengths.empty() || !opened.status().Is(StatusCode::kCorruption)) return opened;
  return OpenOnce(env, options, std::move(lengths));
}

}  // namespace siltfs
