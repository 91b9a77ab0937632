#include "tests/fs/meta/faulty_rocksdb_env.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <string>

namespace siltfs::testing {

namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using Fault = FaultyRocksDbEnv::Fault;

struct Plan {
  std::atomic<Fault> fault{Fault::kNone};
  std::atomic<uint64_t> changes{0};
};

// As the real one marks it.
IOStatus NoSpace() {
  IOStatus status = IOStatus::NoSpace("the test filled the disk");
  status.SetRetryable(true);
  return status;
}

class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, Plan& plan, const std::string& name)
      : FSWritableFileOwnerWrapper(std::move(file)),
        plan_(plan),
        is_table_(name.ends_with(".sst")),
        is_log_(name.ends_with(".log")) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    ++plan_.changes;
    const Fault fault = plan_.fault;
    if (fault == Fault::kAppendNoSpace || (fault == Fault::kTablesNoSpace && is_table_) ||
        (fault == Fault::kLogNoSpace && is_log_)) {
      return NoSpace();
    }
    if (fault == Fault::kAppendHalfNoSpace) {
      const rocksdb::Slice half(data.data(), data.size() / 2);
      const IOStatus status = FSWritableFileOwnerWrapper::Append(half, options, debug);
      return status.ok() ? NoSpace() : status;
    }
    return FSWritableFileOwnerWrapper::Append(data, options, debug);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = SyncFault();
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = SyncFault();
    return status.ok() ? FSWritableFileOwnerWrapper::Fsync(options, debug) : status;
  }

 private:
  IOStatus SyncFault() {
    ++plan_.changes;
    const Fault fault = plan_.fault;
    if (fault == Fault::kSyncNoSpace) return NoSpace();
    if (fault == Fault::kSyncIoError) return IOStatus::IOError("the test made a sync fail");
    return IOStatus::OK();
  }

  Plan& plan_;
  const bool is_table_;
  const bool is_log_;
};

}  // namespace

class FaultyRocksDbEnv::FileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "faulty"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    ++plan.changes;
    const IOStatus status = FileSystemWrapper::NewWritableFile(name, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<FaultyFile>(std::move(*result), plan, name);
    }
    return status;
  }

  Plan plan;
};

FaultyRocksDbEnv::FaultyRocksDbEnv()
    : file_system_(std::make_shared<FileSystem>()), env_(rocksdb::NewCompositeEnv(file_system_)) {}

FaultyRocksDbEnv::~FaultyRocksDbEnv() = default;

rocksdb::Env* FaultyRocksDbEnv::get() { return env_.get(); }
void FaultyRocksDbEnv::Inject(Fault fault) { file_system_->plan.fault = fault; }
uint64_t FaultyRocksDbEnv::changes() const { return file_system_->plan.changes; }

}  // namespace siltfs::testing
