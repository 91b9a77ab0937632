// An ObjectStore that remembers how the calls of another one have ended: whether the service
// answers, and what the last failure was.
//
// An outage begins with the first call that gets no usable answer (kIoError, kAccessDenied), at the
// moment at which this call began. It ends with the next call that the service answers, even if the
// answer is a refusal (kNotFound, kStale, kNoSpace and so on). Without calls, nothing is known: the
// outage seems to go on. Interrupted calls count for nothing.
//
// Thread-safety: every call from any thread. Errors: those of the other store. Ownership: owns the
// other store; `env` must outlive this object.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "store/base/thread_annotations.h"
#include "store/object/object_store.h"

namespace siltfs {

struct ObjectStoreHealth {
  // Of the last call that failed with kIoError, kAccessDenied, kNoSpace or kCorruption. Kept after
  // later calls have succeeded.
  std::string last_error;
  int64_t last_error_ns = 0;  // when it failed, since 1970; 0: never
  bool is_out = false;
  std::chrono::nanoseconds present_outage{0};  // so far
  // All outages since this object was made, with the present one.
  std::chrono::nanoseconds outage{0};
};

class MonitoredObjectStore final : public ObjectStore {
 public:
  MonitoredObjectStore(Env& env, std::unique_ptr<ObjectStore> base)
      : env_(env), base_(std::move(base)) {}

  ObjectStoreHealth Health() const SILTFS_EXCLUDES(mutex_);

  const std::string& name() const override { return base_->name(); }
  Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition) override;
  Result<std::string> Put(const std::string& key, ByteView content,
                          const PutCondition& condition) override;
  Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) override;
  Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                      MutableByteView out) override;
  Result<ObjectInfo> Stat(const std::string& key) override;
  Status Remove(const std::string& key) override;
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override;
  void Interrupt() override { base_->Interrupt(); }
  void InterruptReads() override { base_->InterruptReads(); }
  ObjectStoreCounters Counters() const override { return base_->Counters(); }

 private:
  using Clock = std::chrono::steady_clock;

  // Notes how a call has ended that began at `began`.
  void Note(const Status& status, Clock::time_point began) SILTFS_EXCLUDES(mutex_);

  Env& env_;
  const std::unique_ptr<ObjectStore> base_;
  mutable Mutex mutex_;
  std::string last_error_ SILTFS_GUARDED_BY(mutex_);
  int64_t last_error_ns_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool is_out_ SILTFS_GUARDED_BY(mutex_) = false;
  Clock::time_point out_since_ SILTFS_GUARDED_BY(mutex_);
  std::chrono::nanoseconds past_outages_ SILTFS_GUARDED_BY(mutex_){0};
};

}  // namespace siltfs
