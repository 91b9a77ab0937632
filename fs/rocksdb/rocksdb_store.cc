#include "fs/rocksdb/rocksdb_store.h"

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
#include <atomic>
#include <utility>

#include "fs/rocksdb/key_partitioner.h"
#include "fs/rocksdb/prepared_tables.h"
#include "fs/rocksdb/rocksdb_env.h"
#include "fs/rocksdb/rocksdb_resume.h"
#include "fs/rocksdb/sync_ledger.h"
#include "store/base/thread_annotations.h"
#include "store/env/files.h"

namespace siltfs {

namespace {

constexpr uint64_t kLeastWriteBufferBytes = 512u << 10;
constexpr uint64_t kMostWriteBufferBytes = 4u << 20;
constexpr uint64_t kWriteBufferShare = 128;  // a write buffer is 1/128 of the disk
// The sizes of tables, and of the first level below the flushed tables, in write buffers.
constexpr uint64_t kBuffersPerTable = 2;
constexpr int kTablesToCompact = 4;  // flushed tables
constexpr int kTablesToCompactOnSmallDisk = 2;
constexpr int kTablesToCompactWhenFilling = 12;
constexpr uint64_t kBuffersPerLevel = 8;
constexpr size_t kBlockCacheBytes = 6u << 20;
constexpr const char* kNeverPresentKey = "";  // below all other keys; never written
// An iterator that may give up does so after passing this many removed keys.
constexpr uint64_t kMostSkippedKeys = 64;

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

// Whether the text of another error contains that the disk is full.
bool TellsNoSpace(const rocksdb::Status& status) {
  return status.ToString().find(rocksdb::Status::NoSpace().ToString()) != std::string::npos;
}

// Discards RocksDB's own log messages, which would otherwise go to a file in the store.
class SilentLogger final : public rocksdb::Logger {
 public:
  SilentLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::HEADER_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

// Receives events of RocksDB's background threads. Prevents RocksDB's automatic resume after an
// error, and records that Resume has to be called.
class BackgroundListener final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    NoteEvent();
  }
  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    NoteEvent();
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    // If the disk has no room for the next log, RocksDB assumes that the last log is torn, and does
    // not resume. The severity kHardError allows it to resume. This is safe: siltfs syncs the log
    // with each write, so no part of the log was only in memory.
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

  // The last error for which Resume was not called yet.
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
  // Returns when a flush began or ended, or an error occurred, since events() returned `seen`.
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

  mutable Mutex mutex_;  // locked by RocksDB's threads; no calls are made while it is held
  mutable CondVar changed_;
  uint64_t events_ SILTFS_GUARDED_BY(mutex_) = 0;
  rocksdb::Status error_ SILTFS_GUARDED_BY(mutex_);
};

// The database and the objects its options point to; shared by the store and its snapshots.
struct Database {
  Database(Env& on, std::string at, std::unique_ptr<SyncLedger> with, ManifestLengths lengths)
      : env(on),
        path(std::move(at)),
        ledger(std::move(with)),
        rocksdb_env(NewRocksDbEnv(env, ledger.get(), std::move(lengths))) {}

  Env& env;
  const std::string path;
  bool read_only = false;
  bool filling = false;
  uint64_t write_buffer_bytes = kMostWriteBufferBytes;
  const std::unique_ptr<SyncLedger> ledger;  // null: no ledger
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
  // `most_skipped`: the number of removed keys after which it gives up; 0: it never does.
  RocksDbIterator(const Database& database, const rocksdb::Snapshot* snapshot, std::string_view end,
                  uint64_t most_skipped = 0)
      : path_(database.path), end_(end), end_slice_(end_) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.max_skippable_internal_keys = most_skipped;
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    iterator_.reset(database.db->NewIterator(options));
  }

  void Seek(std::string_view key) override { iterator_->Seek(key); }
  void Next() override { iterator_->Next(); }
  bool Valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return iterator_->key().ToStringView(); }
  std::string_view value() const override { return iterator_->value().ToStringView(); }
  Status status() const override {
    const rocksdb::Status status = iterator_->status();
    if (status.IsIncomplete())
      return Status(StatusCode::kAborted, "too many removed keys were passed");
    return StatusFrom(status, path_);
  }

  // Moves to the last key below the end.
  void SeekToLast() { iterator_->SeekToLast(); }

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
  // A database opened read-only does not change and has no snapshots: snapshot_ is null.
  ~RocksDbSnapshot() override {
    if (snapshot_ != nullptr) database_->db->ReleaseSnapshot(snapshot_);
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return GetFrom(*database_, snapshot_, key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<RocksDbIterator>(*database_, snapshot_, end);
  }
  std::unique_ptr<KvIterator> NewImpatientIterator() const override {
    return std::make_unique<RocksDbIterator>(*database_, snapshot_, std::string_view(),
                                             kMostSkippedKeys);
  }
  Result<std::optional<KvEntry>> LastIn(std::string_view begin,
                                        std::string_view end) const override {
    RocksDbIterator iterator(*database_, snapshot_, end);
    iterator.SeekToLast();
    SILTFS_RETURN_IF_ERROR(iterator.status());
    if (!iterator.Valid() || iterator.key() < begin) return std::optional<KvEntry>();
    return std::optional(KvEntry{std::string(iterator.key()), std::string(iterator.value())});
  }

 private:
  const std::shared_ptr<const Database> database_;
  const rocksdb::Snapshot* const snapshot_;
};

// Computes a batch's size in advance: a batch that grows while it is filled takes up to three times
// its size.
class SizeSink final : public MutationSink {
 public:
  void Put(std::string_view key, std::string_view value) override {
    bytes_ += kEntryHeader + key.size() + value.size();
  }
  void Remove(std::string_view key) override { bytes_ += kEntryHeader + key.size(); }

  size_t bytes() const { return kBatchHeader + bytes_; }

 private:
  static constexpr size_t kBatchHeader = 12;
  static constexpr size_t kEntryHeader = 1 + 2 * 5;  // a tag and two lengths of at most five bytes

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
  Result<std::unique_ptr<KvLoad>> NewLoad() override;
  Status VerifyChecksums() const override;
  uint64_t LoggedChanges() const override;
  uint64_t DiskBytes() const override;
  Status CloseCleanly() override;

 private:
  class TableLoad final : public KvLoad {
   public:
    TableLoad(RocksDbStore& store, uint64_t number)
        : store_(store),
          tables_(*store.database_->db, store.database_->env, store.database_->path, number) {}

    Status Add(const KvRun& run) override {
      return StatusFrom(tables_.Add(run), store_.database_->path);
    }
    Status Load() override { return store_.Ingest(tables_); }

   private:
    RocksDbStore& store_;
    PreparedTables tables_;
  };

  Status CheckWritable() const;
  Status Ingest(PreparedTables& tables);
  Status WriteBatch(rocksdb::WriteBatch& batch) SILTFS_REQUIRES(mutex_);
  // Keeps a failure after which nothing may be written, and returns the status.
  Status KeepFailure(Status written) SILTFS_REQUIRES(mutex_);
  Status PrepareToWrite() SILTFS_REQUIRES(mutex_);
  Status KeepMemoryOccupied() SILTFS_REQUIRES(mutex_);
  // Converts RocksDB's answer. A full disk is recorded, because Resume is needed after it.
  Status Heed(const rocksdb::Status& answer) SILTFS_REQUIRES(mutex_);
  // Returns the listener's error, if it has one. If that is kNoSpace and there is room now, resumes
  // RocksDB instead.
  Status ResumeIfFull() SILTFS_REQUIRES(mutex_);
  // Removes the kNoSpace error from the listener and returns it; call Resume afterwards. If the
  // listener has another error, fails with that.
  Result<rocksdb::Status> TakeErrorToResumeAfter() SILTFS_REQUIRES(mutex_);
  // Whether the disk has less than `bytes` free. False if its free space cannot be read.
  bool SpaceIsShort(uint64_t bytes) const;
  Status FlushAll() SILTFS_REQUIRES(mutex_);
  // Returns when this property, which changes with flushes, is 0; fails with the error that stops
  // the flushes.
  Status WaitUntilNone(const std::string& property) SILTFS_REQUIRES(mutex_);

  const std::shared_ptr<Database> database_;
  std::atomic<uint64_t> loads_{0};
  Mutex mutex_;  // one write at a time: its result decides how the next write is made
  Status failure_ SILTFS_GUARDED_BY(mutex_);  // set once: all later writes fail
  // Whether Resume was called. After that, RocksDB 7.8 takes over no tables: it still believes that
  // it is stopped, and an assertion of IngestExternalFiles fails. So loads are then written.
  bool resumed_ SILTFS_GUARDED_BY(mutex_) = false;
};

Status RocksDbStore::CheckWritable() const {
  if (!database_->read_only) return Status::Ok();
  return Status(StatusCode::kReadOnly, "the metadata store was opened read-only")
      .At(database_->path);
}

Status RocksDbStore::KeepFailure(Status written) {
  if (!written.ok() && !written.Is(StatusCode::kNoSpace)) {
    failure_ = written;
    failure_.IgnoreError("kept for later writes");
  }
  return written;
}

Status RocksDbStore::WriteFrom(const std::function<void(MutationSink&)>& fill) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SizeSink size;
  fill(size);
  BatchSink sink(size.bytes());
  fill(sink);
  if (!sink.status().ok()) return StatusFrom(sink.status(), database_->path);
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  return KeepFailure(WriteBatch(sink.batch()));
}

Result<std::unique_ptr<KvLoad>> RocksDbStore::NewLoad() {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  SILTFS_RETURN_IF_ERROR(ResumeIfFull());
  if (resumed_) return KvStore::NewLoad();
  return std::unique_ptr<KvLoad>(std::make_unique<TableLoad>(*this, ++loads_));
}

Status RocksDbStore::Ingest(PreparedTables& tables) {
  SILTFS_RETURN_IF_ERROR(StatusFrom(tables.Finish(), database_->path));
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  SILTFS_RETURN_IF_ERROR(KeepFailure(PrepareToWrite()));
  if (resumed_)
    return Status(StatusCode::kNoSpace, "the disk was full during a load").At(database_->path);
  const rocksdb::Status answer = tables.Ingest();
  // Unlike Heed, do not cause a Resume. After a full disk RocksDB needs one only if the listener
  // knows the error.
  if (answer.IsNoSpace()) return StatusFrom(answer, database_->path);
  return KeepFailure(Heed(answer));
}

// Ensures that there is data in memory to flush, because Resume begins a new log only if there is
// such data. Without a new log, the next write would follow a torn write, and RocksDB would abort
// the process or refuse all calls permanently. The data is the removal of a key that never existed.
// It is not written to the log.
Status RocksDbStore::KeepMemoryOccupied() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  // This begins the next write buffer if the current one is full.
  SILTFS_RETURN_IF_ERROR(Heed(database_->db->Delete(options, kNeverPresentKey)));
  // Wait until the flush of a full buffer has begun. If a write to the log found the disk full
  // before that, RocksDB would forget the flush, and Resume would wait for it forever.
  return WaitUntilNone(rocksdb::DB::Properties::kMemTableFlushPending);
}

Status RocksDbStore::PrepareToWrite() {
  SILTFS_RETURN_IF_ERROR(ResumeIfFull());
  const Status prepared = KeepMemoryOccupied();
  if (!prepared.Is(StatusCode::kNoSpace)) return prepared;
  // A background job that began on a full disk may report the error only now.
  SILTFS_RETURN_IF_ERROR(ResumeIfFull());
  return KeepMemoryOccupied();
}

Status RocksDbStore::WriteBatch(rocksdb::WriteBatch& batch) {
  SILTFS_RETURN_IF_ERROR(PrepareToWrite());
  rocksdb::WriteOptions options;
  options.sync = !database_->filling;
  options.disableWAL = database_->filling;
  return Heed(database_->db->Write(options, &batch));
}

Status RocksDbStore::Heed(const rocksdb::Status& answer) {
  const rocksdb::Status known = database_->background->error();
  // If a write waited for a flush that failed, its answer holds the flush's error only as text. The
  // listener may not have the error any more, if it was removed for a Resume that did not end
  // RocksDB's error state. The next write then calls Resume again.
  if (answer.IsIncomplete() && (known.IsNoSpace() || (known.ok() && TellsNoSpace(answer)))) {
    const rocksdb::Status full = known.IsNoSpace() ? known : rocksdb::Status::NoSpace();
    if (known.ok()) database_->background->SetError(full);
    return StatusFrom(full, database_->path);
  }
  if (answer.IsNoSpace() && known.ok()) database_->background->SetError(answer);
  return StatusFrom(answer, database_->path);
}

Status RocksDbStore::ResumeIfFull() {
  const rocksdb::Status known = database_->background->error();
  if (!known.IsNoSpace()) return StatusFrom(known, database_->path);
  // If the disk has no room to flush the memory, Resume may wait for a flush that never begins.
  if (SpaceIsShort(database_->write_buffer_bytes)) return StatusFrom(known, database_->path);
  SILTFS_ASSIGN_OR_RETURN(const rocksdb::Status error, TakeErrorToResumeAfter());
  // Flushes the memory and starts a new log, so that no write follows the torn end of the old one.
  resumed_ = true;
  const rocksdb::Status resumed = ResumeOrGiveUp(*database_->db);
  if (resumed.IsShutdownInProgress()) {
    return Status(StatusCode::kIoError,
                  "the metadata cannot be written again after the disk was full; unmount the store "
                  "and mount it again; no synced change is lost")
        .At(database_->path);
  }
  if (!resumed.ok()) database_->background->SetError(error);
  return StatusFrom(resumed, database_->path);
}

// RocksDB reports a background error to the listener first, and then enters its error state. Resume
// does nothing before RocksDB is in that state. So this function pauses background work. During the
// pause RocksDB reports no new error, and it is in the error state if the listener has an error.
// The caller must call Resume after this function has removed an error from the listener. Without
// Resume, RocksDB would stay in the error state, and all calls would fail permanently.
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
    // An error kNoSpace may come from a compaction that found the disk full. It does not stop
    // flushes.
    if (none && (error.ok() || error.IsNoSpace())) return Status::Ok();
    if (!error.ok()) return StatusFrom(error, database_->path);
    database_->background->WaitForEventAfter(seen);
  }
}

// First verifies each block, which locates the damage. RocksDB's VerifyChecksum skips some blocks
// (partitioned filters), so VerifyFileChecksums then verifies each file as a whole.
Status RocksDbStore::VerifyChecksums() const {
  rocksdb::Status verified = database_->db->VerifyChecksum();
  if (verified.ok()) verified = database_->db->VerifyFileChecksums(rocksdb::ReadOptions());
  return StatusFrom(verified, database_->path);
}

// Counts the changes in memory. In a read-only database these are all changes in the logs, because
// RocksDB replays the logs into memory and does not flush them.
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
    // The size is only information for users. So if the directory cannot be listed, return the size
    // of the tables, which RocksDB knows.
    uint64_t bytes = 0;
    database_->db->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &bytes);
    return bytes;
  }
  uint64_t bytes = 0;
  for (const DirectoryEntry& file : *files) {
    const auto info = database_->env.GetFileInfo(JoinPath(database_->path, file.name));
    if (info.ok()) bytes += info->size;  // not OK: the file was removed after it was listed
  }
  return bytes;
}

Status RocksDbStore::CloseCleanly() {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (!database_->read_only) {
    SILTFS_RETURN_IF_ERROR(ResumeIfFull());
    // The flush leaves an empty log; the old logs are deleted during the flush or by Close.
    Status flushed = FlushAll();
    if (flushed.Is(StatusCode::kNoSpace)) {
      // See PrepareToWrite: an earlier full disk may be reported only now.
      SILTFS_RETURN_IF_ERROR(ResumeIfFull());
      flushed = FlushAll();
    }
    SILTFS_RETURN_IF_ERROR(flushed);
  }
  SILTFS_RETURN_IF_ERROR(StatusFrom(database_->db->Close(), database_->path));
  if (database_->ledger != nullptr) database_->ledger->Close();
  // RocksDB does not make the removal of the old logs durable.
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
  // Keep partitioned indexes and filters in the block cache. In a large store, indexes and filters
  // that are not partitioned would exceed the cache.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_top_level_index_and_filter = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = 4096;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // RocksDB 7.8 (Debian 12) can read files in this format that newer versions of RocksDB wrote.
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;  // the only one that table_check.cc supports
  return table;
}

bool Makes(KvStoreOptions::Mode mode) {
  return mode == KvStoreOptions::Mode::kCreate || mode == KvStoreOptions::Mode::kFill;
}

rocksdb::Options DatabaseOptions(const KvStoreOptions& options, Database& database) {
  rocksdb::Options db;
  db.env = database.rocksdb_env.get();
  db.info_log = std::make_shared<SilentLogger>();
  db.listeners.push_back(database.background);
  db.create_if_missing = Makes(options.mode);
  db.error_if_exists = Makes(options.mode);

  // Safety.
  db.paranoid_checks = true;
  // A crash leaves a torn end of the log. The sync ledger detects damage below it.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.track_and_verify_wals_in_manifest = true;
  // These checksums of files are kept in the MANIFEST, for VerifyChecksums; files written without
  // this option have none.
  db.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  db.max_bgerror_resume_count = 0;  // RocksDB must not retry a failed sync by itself

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

  // Shape on disk. With small files a compaction needs little free space.
  db.max_manifest_file_size = 1u << 20;
  // On a small disk overwritten data is dropped early.
  db.level0_file_num_compaction_trigger = database.write_buffer_bytes < kMostWriteBufferBytes
                                              ? kTablesToCompactOnSmallDisk
                                              : kTablesToCompact;
  // What is compacted early is compacted again. The usual bounds of tables that wait remain, so
  // that the next open need not wait for a compaction.
  if (database.filling && database.write_buffer_bytes == kMostWriteBufferBytes)
    db.level0_file_num_compaction_trigger = kTablesToCompactWhenFilling;
  db.level_compaction_dynamic_level_bytes = true;
  db.max_bytes_for_level_base = kBuffersPerLevel * database.write_buffer_bytes;
  db.target_file_size_base = kBuffersPerTable * database.write_buffer_bytes;
  db.compression = rocksdb::kLZ4Compression;
  db.bottommost_compression = rocksdb::kZSTD;
  if (!options.loaded_bytes.empty())
    db.sst_partitioner_factory = NewKeyPartitioner(options.loaded_bytes);
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions()));
  return db;
}

Status OpenStatus(Env& env, const rocksdb::Status& status, const KvStoreOptions& options) {
  Status result = StatusFrom(status, options.path);
  // RocksDB 9 wraps an error from writing its options file and loses the error's kind.
  if (result.Is(StatusCode::kIoError) &&
      result.cause().find("No space left on device") != std::string_view::npos) {
    return Status(StatusCode::kNoSpace, std::string(result.cause())).At(options.path);
  }
  if (!status.IsInvalidArgument() && !status.IsNotFound() && !status.IsPathNotFound())
    return result;
  if (!Makes(options.mode) && env.GetFileInfo(JoinPath(options.path, "CURRENT")).ok()) {
    // There is a store, but one of its files is missing or malformed.
    result.IgnoreError("reported as kCorruption");
    return Status(StatusCode::kCorruption, "the metadata store says: " + status.ToString())
        .At(options.path);
  }
  result.IgnoreError("a clearer Status follows");
  if (Makes(options.mode)) {
    return Status(StatusCode::kAlreadyExists, "there is a metadata store already").At(options.path);
  }
  return Status(StatusCode::kNotFound, "no metadata store here: " + status.ToString())
      .At(options.path);
}

// Makes one attempt to open the store. Of each MANIFEST in `lengths`, only the given number of
// bytes is read.
Result<std::unique_ptr<KvStore>> OpenOnce(Env& env, const KvStoreOptions& options,
                                          ManifestLengths lengths) {
  const bool read_only = options.mode == KvStoreOptions::Mode::kReadOnly;
  std::unique_ptr<SyncLedger> ledger;
  if (!options.ledger_path.empty() && !read_only) {
    SILTFS_ASSIGN_OR_RETURN(ledger, SyncLedger::Open(env, options.ledger_path, options.path));
  }
  auto database =
      std::make_shared<Database>(env, options.path, std::move(ledger), std::move(lengths));
  database->read_only = read_only;
  database->filling = options.mode == KvStoreOptions::Mode::kFill;
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

Result<std::unique_ptr<KvStore>> OpenRocksDbStore(Env& env, const KvStoreOptions& options) {
  ManifestLengths lengths;
  if (!options.ledger_path.empty()) {
    SILTFS_ASSIGN_OR_RETURN(const SyncLedgerState state,
                            CheckSyncLedger(env, options.ledger_path, options.path));
    for (const SyncLedgerEntry& entry : state.entries) {
      if (SyncLedger::IsManifest(entry.name)) lengths[entry.name] = entry.length;
    }
  }
  // Return here if CURRENT is missing, so that the ledger and RocksDB create no files.
  const std::string current = JoinPath(options.path, "CURRENT");
  if (!Makes(options.mode) && env.GetFileInfo(current).status().Is(StatusCode::kNotFound)) {
    return Status(StatusCode::kNotFound, "no metadata store here: there is no CURRENT")
        .At(options.path);
  }
  if (options.mode == KvStoreOptions::Mode::kOpen)
    SILTFS_RETURN_IF_ERROR(PreparedTables::RemoveLeft(env, options.path));
  // First open without the ledger's lengths, because the ledger may be damaged, and a whole
  // MANIFEST can be read to its end.
  auto opened = OpenOnce(env, options, {});
  if (lengths.empty() || !opened.status().Is(StatusCode::kCorruption)) return opened;
  return OpenOnce(env, options, std::move(lengths));
}

}  // namespace siltfs
