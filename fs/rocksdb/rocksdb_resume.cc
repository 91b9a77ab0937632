#include "fs/rocksdb/rocksdb_resume.h"

#include <rocksdb/convenience.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include "store/base/thread_annotations.h"

namespace siltfs {
namespace {

constexpr std::chrono::milliseconds kInterval{250};
constexpr unsigned kMostIdleIntervals = 40;

// The result of Resume, which runs in another thread.
class Outcome {
 public:
  void Set(const rocksdb::Status& status) {
    MutexLock lock(mutex_);
    status_ = status;
    set_.NotifyAll();
  }
  // Waits for the result, but at most kInterval.
  std::optional<rocksdb::Status> Await() {
    MutexLock lock(mutex_);
    if (!status_) set_.WaitFor(mutex_, kInterval);
    return status_;
  }

 private:
  Mutex mutex_;
  CondVar set_;
  std::optional<rocksdb::Status> status_ SILTFS_GUARDED_BY(mutex_);
};

// Whether a flush is due, but none is running.
bool IsIdle(rocksdb::DB& db) {
  uint64_t due = 0;
  uint64_t running = 1;
  return db.GetIntProperty(rocksdb::DB::Properties::kMemTableFlushPending, &due) && due > 0 &&
         db.GetIntProperty(rocksdb::DB::Properties::kNumRunningFlushes, &running) && running == 0;
}

}  // namespace

rocksdb::Status ResumeOrGiveUp(rocksdb::DB& db) {
  Outcome outcome;
  std::thread resuming;
  try {
    resuming = std::thread([&] { outcome.Set(db.Resume()); });
  } catch (const std::system_error&) {
    return db.Resume();
  }
  std::optional<rocksdb::Status> resumed;
  for (unsigned idle = 0; !(resumed = outcome.Await());) {
    idle = IsIdle(db) ? idle + 1 : 0;
    if (idle == kMostIdleIntervals) rocksdb::CancelAllBackgroundWork(&db, /*wait=*/false);
  }
  resuming.join();
  return *resumed;
}

}  // namespace siltfs
