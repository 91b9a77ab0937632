// The machine's file system under RocksDB, made to fail: full, or not syncing.
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>

namespace rocksdb {
class Env;
}

namespace siltfs::testing {

class FaultyRocksDbEnv {
 public:
  enum class Fault : uint8_t {
    kNone,
    kAppendNoSpace,      // nothing is appended to any file
    kAppendHalfNoSpace,  // the first half is
    kSyncNoSpace,        // what was appended stays, but a sync fails
    kTablesNoSpace,      // as kAppendNoSpace, for tables only: the log goes on
    kLogNoSpace,         // as kAppendNoSpace, for the log only: tables go on
    kSyncIoError,        // a sync fails
  };

  FaultyRocksDbEnv();
  ~FaultyRocksDbEnv();

  rocksdb::Env* get();
  void Inject(Fault fault);
  void Mend() { Inject(Fault::kNone); }
  // Files created, and appends and syncs tried, so far.
  uint64_t changes() const;

 private:
  class FileSystem;
  std::shared_ptr<FileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace siltfs::testing
