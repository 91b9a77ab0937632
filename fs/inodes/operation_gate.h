// Lets the operations on live inodes in, or keeps all of them out while a rollback replaces the
// records of all inodes.
//
// An operation holds a Pass from its first look at an inode until its end. Passes do not exclude
// each other. A Closure excludes all of them: it begins when no Pass exists, and until its end,
// Enter waits. An operation must not take a second Pass while it has one, because a Closure may be
// waiting for the first one. A Pass is taken before any lock of an inode.
//
// Thread-safety: every call from any thread. Errors: after Break, Enter and Close return its error.
// No I/O. The cost of a Pass is two atomic operations.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class OperationGate {
 public:
  class Pass {
   public:
    explicit Pass(OperationGate& gate) : gate_(&gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }

   private:
    OperationGate* gate_;
  };
  // Waits while the gate is closed.
  Result<Pass> Enter() SILTFS_EXCLUDES(mutex_);

  class Closure {
   public:
    explicit Closure(OperationGate& gate) : gate_(&gate) {}
    Closure(Closure&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Closure& operator=(Closure&&) = delete;
    ~Closure() {
      if (gate_ != nullptr) gate_->Open();
    }

   private:
    OperationGate* gate_;
  };
  // Waits until no Pass exists, at most for `patience`; meanwhile, Enter waits, too. Returns
  // nullopt if there still is a Pass.
  Result<std::optional<Closure>> Close(std::chrono::nanoseconds patience) SILTFS_EXCLUDES(mutex_);

  // Makes all later calls of Enter and Close fail with this error.
  void Break(const Status& why) SILTFS_EXCLUDES(mutex_);
  bool broken() const SILTFS_EXCLUDES(mutex_);

 private:
  void Leave() SILTFS_EXCLUDES(mutex_);
  void Open() SILTFS_EXCLUDES(mutex_);

  // Each is changed before the other one is read, in one order for all threads. So either Enter
  // sees that the gate is closed, or Close sees the Pass.
  std::atomic<uint64_t> passes_{0};
  std::atomic<bool> closed_{false};  // also after Break, so that Enter looks for the error

  mutable Mutex mutex_;
  CondVar opened_;
  CondVar left_;
  bool has_closure_ SILTFS_GUARDED_BY(mutex_) = false;
  Status broken_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
