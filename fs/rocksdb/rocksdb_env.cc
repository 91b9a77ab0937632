#include "fs/rocksdb/rocksdb_env.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <utility>

#include "fs/rocksdb/log_check.h"
#include "fs/rocksdb/sync_ledger.h"
#include "fs/rocksdb/table_check.h"
#include "store/base/checksum.h"
#include "store/base/thread_annotations.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus ToRocksDb(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return IOStatus::OK();
    case StatusCode::kNotFound:
      return IOStatus::PathNotFound(status.ToString());
    case StatusCode::kNoSpace: {
      IOStatus full = IOStatus::NoSpace(status.ToString());
      full.SetRetryable(true);  // there may be room later
      return full;
    }
    case StatusCode::kCorruption:
      return IOStatus::Corruption(status.ToString());
    default:
      return IOStatus::IOError(status.ToString());
  }
}

// Converts the result of a call by which RocksDB asks whether a file exists.
IOStatus ToRocksDbLookup(const Status& status) {
  if (status.Is(StatusCode::kNotFound) || status.Is(StatusCode::kNotADirectory)) {
    return IOStatus::NotFound(status.ToString());
  }
  return ToRocksDb(status);
}

// Reads at most `size` bytes into `scratch`; `result` is set to the bytes read.
IOStatus ReadInto(const File& file, uint64_t offset, size_t size, char* scratch, Slice* result) {
  const auto got = file.Read(offset, {reinterpret_cast<uint8_t*>(scratch), size});
  *result = Slice(scratch, got.ok() ? *got : 0);
  return ToRocksDb(got.status());
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  // Reads stop at `end`. RocksDB reads a log block by block. Reads of a log also stop before a
  // recycled record, because RocksDB's reader would loop forever at such a record (log_check.h).
  SequentialFile(std::unique_ptr<File> file, bool is_log, uint64_t end)
      : file_(std::move(file)), is_log_(is_log), end_(end) {}

  IOStatus Read(size_t size, const IOOptions& /*options*/, Slice* result, char* scratch,
                IODebugContext* /*debug*/) override {
    const uint64_t left = end_ - std::min(end_, offset_);
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, left));
    const IOStatus status = ReadInto(*file_, offset_, wanted, scratch, result);
    if (is_log_ && offset_ % kLogBlockBytes == 0 && result->size() <= kLogBlockBytes) {
      const size_t good = BytesBeforeRecycled(AsBytes(result->ToStringView()));
      if (good < result->size()) end_ = offset_ + good;
      *result = Slice(scratch, good);
    }
    offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t bytes) override {
    offset_ += bytes;
    return IOStatus::OK();
  }

 private:
  const std::unique_ptr<File> file_;
  const bool is_log_;
  uint64_t end_;
  uint64_t offset_ = 0;  // of the next read
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t size, const IOOptions& /*options*/, Slice* result,
                char* scratch, IODebugContext* /*debug*/) const override {
    return ReadInto(*file_, offset, size, scratch, result);
  }
  // If the result is NotSupported, RocksDB does its own readahead. The inherited default differs
  // between RocksDB's versions.
  IOStatus Prefetch(uint64_t /*offset*/, size_t /*size*/, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("Prefetch");
  }

 private:
  const std::unique_ptr<File> file_;
};

// Reports synced lengths of a log to the ledger. Thread-safe.
class LogWatch {
 public:
  LogWatch(SyncLedger& ledger, std::string path) : ledger_(ledger), path_(std::move(path)) {}

  void Appended(ByteView bytes) {
    MutexLock lock(mutex_);
    checksum_.Add(bytes);
    length_ += bytes.size();
  }
  // Syncs the file and reports its length. After a failure, the bytes above the last synced length
  // are permanently unknown, so the log is not reported again.
  Status Sync(File& file) {
    const Extent extent = Appended();
    Status synced = file.Sync();
    MutexLock lock(mutex_);
    if (!synced.ok()) failed_ = true;
    if (failed_) return synced;
    synced = ledger_.Synced(path_, extent.length, extent.checksum);
    if (!synced.ok()) failed_ = true;
    return synced;
  }
  // Withdraws the log from the ledger. Call before the file's content differs from the appended
  // bytes.
  Status Stop() {
    MutexLock lock(mutex_);
    failed_ = true;
    return ledger_.Withdraw(path_);
  }

 private:
  struct Extent {
    uint64_t length;
    uint64_t checksum;
  };

  Extent Appended() {
    MutexLock lock(mutex_);
    return {length_, checksum_.value()};
  }

  SyncLedger& ledger_;
  const std::string path_;
  Mutex mutex_;  // locked before the ledger's mutex
  StreamingChecksum checksum_ SILTFS_GUARDED_BY(mutex_);
  uint64_t length_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool failed_ SILTFS_GUARDED_BY(mutex_) = false;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::unique_ptr<File> file, uint64_t size, std::unique_ptr<LogWatch> watch)
      : file_(std::move(file)), size_(size), watch_(std::move(watch)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*debug*/) override {
    const Status written = file_->Write(size_, AsBytes(data.ToStringView()));
    if (!written.ok()) return ToRocksDb(written);
    size_ += data.size();
    if (watch_ != nullptr) watch_->Appended(AsBytes(data.ToStringView()));
    return IOStatus::OK();
  }
  IOStatus Truncate(uint64_t size, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    if (size == size_) return IOStatus::OK();
    if (watch_ != nullptr) {
      const Status stopped = watch_->Stop();
      if (!stopped.ok()) return ToRocksDb(stopped);
    }
    const Status truncated = file_->Truncate(size);
    if (truncated.ok()) size_ = size;
    return ToRocksDb(truncated);
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();  // nothing is buffered
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return ToRocksDb(watch_ != nullptr ? watch_->Sync(*file_) : file_->Sync());
  }
  IOStatus RangeSync(uint64_t offset, uint64_t size, const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    file_->BeginSync(offset, size);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return ToRocksDb(file_->Close());
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return size_;
  }

 private:
  const std::unique_ptr<File> file_;
  uint64_t size_;                          // where the next bytes go
  const std::unique_ptr<LogWatch> watch_;  // null: not a log
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return ToRocksDb(env_.SyncDirectory(path_));
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  Env& env_;
  const std::string path_;
};

class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::unique_ptr<siltfs::FileLock> lock) : lock_(std::move(lock)) {}

 private:
  const std::unique_ptr<siltfs::FileLock> lock_;
};

class EnvFileSystem final : public rocksdb::FileSystem {
 public:
  EnvFileSystem(Env& env, SyncLedger* ledger, ManifestLengths lengths)
      : env_(env), ledger_(ledger), manifest_lengths_(std::move(lengths)) {}

  const char* Name() const override { return "siltfs"; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& /*options*/,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* /*debug*/) override {
    auto file = env_.OpenFile(path, {OpenMode::kRead});
    if (!file.ok()) return ToRocksDb(file.status());
    const Status size = CheckLogSize(**file);
    if (!size.ok()) return ToRocksDb(size);
    const auto known = manifest_lengths_.find(path.substr(path.rfind('/') + 1));
    const uint64_t end = known == manifest_lengths_.end() ? UINT64_MAX : known->second;
    *result =
        std::make_unique<SequentialFile>(std::move(file).value(), SyncLedger::IsLog(path), end);
    return IOStatus::OK();
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& /*options*/,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* /*debug*/) override {
    auto file = env_.OpenFile(path, {OpenMode::kRead});
    if (!file.ok()) return ToRocksDb(file.status());
    if (path.ends_with(".sst")) {
      const Status checked = CheckTable(**file);
      if (!checked.ok()) return ToRocksDb(checked);
    }
    *result = std::make_unique<RandomAccessFile>(std::move(file).value());
    return IOStatus::OK();
  }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& /*options*/,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* /*debug*/) override {
    return ToRocksDb(OpenForWriting(path, /*keep=*/false, result));
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& /*options*/,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* /*debug*/) override {
    return ToRocksDb(OpenForWriting(path, /*keep=*/true, result));
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& /*options*/,
                        std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext* /*debug*/) override {
    const Status there = CheckDirectory(path);
    if (there.ok()) *result = std::make_unique<Directory>(env_, path);
    return ToRocksDb(there);
  }

  IOStatus FileExists(const std::string& path, const IOOptions& /*options*/,
                      IODebugContext* /*debug*/) override {
    const auto info = env_.GetFileInfo(path);
    // RocksDB creates its file IDENTITY if this call returns NotFound, and reads it after OK. So
    // another object of this name must count as missing.
    if (info.ok() && info->type != FileType::kRegular && path.ends_with("/IDENTITY"))
      return IOStatus::NotFound(path);
    return ToRocksDbLookup(info.status());
  }

  IOStatus GetChildren(const std::string& path, const IOOptions& /*options*/,
                       std::vector<std::string>* result, IODebugContext* /*debug*/) override {
    result->clear();
    const auto entries = env_.ListDirectory(path);
    if (!entries.ok()) return ToRocksDbLookup(entries.status());
    for (const DirectoryEntry& entry : *entries) result->push_back(entry.name);
    return IOStatus::OK();
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& /*options*/,
                      IODebugContext* /*debug*/) override {
    if (IsWatched(path)) ledger_->Removed(path);
    return ToRocksDb(env_.RemoveFile(path));
  }

  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    const Status withdrawn = Withdraw(path);
    if (!withdrawn.ok()) return ToRocksDb(withdrawn);
    const auto file = env_.OpenFile(path, {OpenMode::kReadWrite});
    return ToRocksDb(file.ok() ? (*file)->Truncate(size) : file.status());
  }

  IOStatus CreateDir(const std::string& path, const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    return ToRocksDb(env_.CreateDirectory(path));
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& /*options*/,
                              IODebugContext* /*debug*/) override {
    Status created = env_.CreateDirectory(path);
    if (created.Is(StatusCode::kAlreadyExists)) created = CheckDirectory(path);
    return ToRocksDb(created);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    return ToRocksDb(env_.RemoveDirectory(path));
  }

  IOStatus GetFileSize(const std::string& path, const IOOptions& /*options*/, uint64_t* size,
                       IODebugContext* /*debug*/) override {
    const auto info = env_.GetFileInfo(path);
    *size = info.ok() ? info->size : 0;
    return ToRocksDb(info.status());
  }
  IOStatus GetFileModificationTime(const std::string& /*path*/, const IOOptions& /*options*/,
                                   uint64_t* /*time*/, IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("GetFileModificationTime");
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& /*options*/,
                      IODebugContext* /*debug*/) override {
    Status status = Withdraw(from);
    if (status.ok()) status = Withdraw(to);
    // Sync the directory before CURRENT refers to the new MANIFEST. RocksDB itself syncs the names
    // of the MANIFEST and of its tables only after this rename. Without the sync, a file system
    // could make the rename durable before these names. A crash between the two would leave neither
    // the old metadata nor the new.
    const size_t slash = to.rfind('/');
    const bool names_manifest = to.substr(slash + 1) == "CURRENT";
    if (status.ok() && names_manifest) status = env_.SyncDirectory(to.substr(0, slash));
    if (status.ok()) status = env_.Rename(from, to);
    return ToRocksDb(status);
  }

  // Moves the file. RocksDB links a table that was prepared for a load into its own names, syncs
  // the directory, and removes the first name only after the load. But a table that is moved needs
  // no first name: if the load fails, the table is not needed.
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return ToRocksDb(env_.Rename(from, to));
  }

  IOStatus LockFile(const std::string& path, const IOOptions& /*options*/, rocksdb::FileLock** lock,
                    IODebugContext* /*debug*/) override {
    auto held = env_.LockFile(path);
    if (held.status().Is(StatusCode::kCorruption)) {  // a damaged lock file holds no data
      const Status removed = env_.RemoveFile(path);
      if (!removed.ok()) return ToRocksDb(removed);
      held = env_.LockFile(path);
    }
    *lock = held.ok() ? new HeldLock(std::move(held).value()) : nullptr;
    return ToRocksDb(held.status());
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/,
                      IODebugContext* /*debug*/) override {
    delete lock;
    return IOStatus::OK();
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& /*options*/, uint64_t* bytes,
                        IODebugContext* /*debug*/) override {
    const auto space = env_.GetDiskSpace(path);
    *bytes = space.ok() ? space->available_bytes : 0;
    return ToRocksDb(space.status());
  }

  IOStatus IsDirectory(const std::string& path, const IOOptions& /*options*/, bool* is_directory,
                       IODebugContext* /*debug*/) override {
    const auto info = env_.GetFileInfo(path);
    *is_directory = info.ok() && info->type == FileType::kDirectory;
    return ToRocksDb(info.status());
  }

  // Used for RocksDB's own log, which is disabled, and by RocksDB's tests.
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions& /*options*/,
                           std::string* result, IODebugContext* /*debug*/) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions& /*options*/, std::string* /*path*/,
                            IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("GetTestDirectory");
  }
  IOStatus NewLogger(const std::string& /*path*/, const IOOptions& /*options*/,
                     std::shared_ptr<rocksdb::Logger>* /*result*/,
                     IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("NewLogger");
  }

 private:
  Status CheckDirectory(const std::string& path) {
    SILTFS_ASSIGN_OR_RETURN(const FileInfo info, env_.GetFileInfo(path));
    if (info.type == FileType::kDirectory) return Status::Ok();
    return Status(StatusCode::kNotADirectory, "not a directory").At(path);
  }

  bool IsWatched(const std::string& path) const {
    return ledger_ != nullptr && SyncLedger::IsLog(path);
  }
  // Withdraws the file's entry from the ledger. Call before the content of a file of this name is
  // replaced.
  Status Withdraw(const std::string& path) {
    return IsWatched(path) ? ledger_->Withdraw(path) : Status::Ok();
  }

  // Opens the file, and creates it if it does not exist. If `keep`, an existing file's content is
  // kept; otherwise the file is truncated.
  Status OpenForWriting(const std::string& path, bool keep,
                        std::unique_ptr<rocksdb::FSWritableFile>* result) {
    if (!keep) SILTFS_RETURN_IF_ERROR(Withdraw(path));
    auto file = env_.OpenFile(path, {OpenMode::kCreate});
    uint64_t size = 0;
    if (file.status().Is(StatusCode::kAlreadyExists)) {
      file = env_.OpenFile(path, {OpenMode::kReadWrite});
      if (!file.ok()) return file.status();
      if (keep) {
        SILTFS_ASSIGN_OR_RETURN(size, (*file)->Size());
      } else {
        SILTFS_RETURN_IF_ERROR((*file)->Truncate(0));
      }
    }
    if (!file.ok()) return file.status();
    std::unique_ptr<LogWatch> watch;
    if (IsWatched(path)) {
      watch = std::make_unique<LogWatch>(*ledger_, path);
      SILTFS_RETURN_IF_ERROR(PassTo(*watch, **file, size));
      ledger_->MakeDurable();
    }
    *result = std::make_unique<WritableFile>(std::move(file).value(), size, std::move(watch));
    return Status::Ok();
  }

  // Passes the existing bytes of a reopened log to `watch`.
  static Status PassTo(LogWatch& watch, const File& file, uint64_t size) {
    Bytes bytes(64u << 10);
    for (uint64_t at = 0; at < size; at += bytes.size()) {
      const MutableByteView piece =
          MutableByteView(bytes).first(std::min<uint64_t>(bytes.size(), size - at));
      SILTFS_RETURN_IF_ERROR(ReadExactly(file, at, piece));
      watch.Appended(piece);
    }
    return Status::Ok();
  }

  Env& env_;
  SyncLedger* const ledger_;  // null: no ledger
  const ManifestLengths manifest_lengths_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewRocksDbEnv(Env& env, SyncLedger* ledger, ManifestLengths lengths) {
  return rocksdb::NewCompositeEnv(std::make_shared<EnvFileSystem>(env, ledger, std::move(lengths)));
}

}  // namespace siltfs
