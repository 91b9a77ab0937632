// A key-value store in memory with a disk that outlives it: the reference for RocksDB, with
// injected write failures.
//
// The crash model: a write reaches the disk as a whole or not at all. A test can make a write fail,
// and chooses whether the failed write reaches the disk. Readers of the open store never see a
// failed write. Destroying the store is a crash; opening another store on the same disk shows what
// the disk holds. Thread-safety: all calls from any thread. A test must not open several stores on
// one disk at a time.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"

namespace siltfs::testing {

// The Status of an injected failure, and whether the write still reaches the disk.
struct WriteFailure {
  StatusCode code = StatusCode::kIoError;
  bool reaches_disk = false;
};

class MemoryDisk {
 public:
  // The write with this number (the first is 1, counted over all stores on this disk) fails.
  void FailWrite(uint64_t number, WriteFailure failure);
  // Every write fails from now on, until Mend.
  void FailAllWrites(WriteFailure failure);
  void Mend();
  // Blocks writes until ReleaseWrites. A blocked write is counted only when it continues.
  void HoldWrites();
  void ReleaseWrites();

  // Number of attempted writes, failed ones included.
  uint64_t writes() const;
  // Returns when `count` writes were attempted.
  void WaitForWrites(uint64_t count) const;
  bool closed_cleanly() const;
  // The number of writes attempted after a write had failed with an error other than kNoSpace.
  uint64_t writes_after_failure() const;
  std::map<std::string, std::string> contents() const;

 private:
  friend class MemoryKvStore;

  // Counts the write and decides its outcome. If the write reaches the disk, applies it there.
  Status Take(const std::vector<Mutation>& mutations);

  mutable std::mutex mutex_;
  mutable std::condition_variable written_;
  std::condition_variable released_;
  std::map<std::string, std::string> contents_;
  std::map<uint64_t, WriteFailure> failures_;
  std::optional<WriteFailure> fail_all_;
  uint64_t writes_ = 0;
  uint64_t writes_after_failure_ = 0;
  bool held_ = false;
  bool failed_for_good_ = false;
  bool closed_cleanly_ = false;
};

// `disk` must outlive the store.
std::unique_ptr<KvStore> OpenMemoryKvStore(MemoryDisk& disk);

}  // namespace siltfs::testing
