// The quotas of a store in memory: their limits, and how much of them is used.
//
// The usage here is that of metadata with all operations that were applied, and in addition what
// deferred changes will add to it (change_applier.h) and what running operations have reserved. An
// operation that makes an inode or lets a file grow first reserves the most that it may add, and
// gives the reservation up when its change is applied or deferred. So concurrent operations cannot
// exceed a limit together. A reservation that fails only because of others waits for these, because
// they may be larger than what their operations add.
//
// While the inodes below a directory are counted for a new quota (fs/ops/quota_counter.h), the
// quota exists only here. It counts the inodes that have its number, and has no effect yet: only
// Existing and Counting know it.
//
// Thread-safety: every call from any thread. No I/O but in Load. Errors: kQuotaExceeded from
// Reserve; those of metadata from Load. A call for kNoQuota, or for a quota that does not exist,
// does nothing; without quotas, it costs one comparison. Memory: some 100 bytes for each quota.
// Lock order: Reserve may wait for operations that hold a reservation. So an operation with a
// reservation takes no lock of an inode that another operation may have.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/quota_record.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// An inode without content.
inline constexpr QuotaUsage kOneFile{.bytes = 0, .files = 1};

class Quotas {
 public:
  struct State {
    QuotaNumber number = kNoQuota;
    QuotaRecord record;
    QuotaUsage usage;  // with deferred changes, and without reservations
  };

  // Room for an operation; ends with its destruction.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Quotas& quotas, QuotaNumber quota, const QuotaUsage& room)
        : quotas_(&quotas), quota_(quota), room_(room) {}
    Reservation(Reservation&& other) noexcept
        : quotas_(std::exchange(other.quotas_, nullptr)),
          quota_(other.quota_),
          room_(other.room_) {}
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
      if (quotas_ != nullptr) quotas_->Release(quota_, room_);
    }

   private:
    Quotas* quotas_ = nullptr;
    QuotaNumber quota_ = kNoQuota;
    QuotaUsage room_;
  };

  // Reads all quotas from metadata, in the place of those that are known. No operation may run.
  Status Load(const MetadataStore& metadata) SILTFS_EXCLUDES(mutex_);

  bool any() const { return any_.load(std::memory_order_acquire); }
  // The number itself if there is such a quota, also one that is being counted; otherwise kNoQuota.
  QuotaNumber Existing(QuotaNumber quota) const SILTFS_EXCLUDES(mutex_);
  Result<Reservation> Reserve(QuotaNumber quota, const QuotaUsage& room) SILTFS_EXCLUDES(mutex_);
  void Count(const QuotaDifferences& differences) SILTFS_EXCLUDES(mutex_);
  // Whether so little is left of the bytes that a program should learn at once when its write
  // exceeds the limit.
  bool NearlyUsed(QuotaNumber quota) const SILTFS_EXCLUDES(mutex_);

  // Those that have effect.
  std::optional<State> Find(QuotaNumber quota) const SILTFS_EXCLUDES(mutex_);
  std::vector<State> All() const SILTFS_EXCLUDES(mutex_);

  // At most one quota is being counted at a time. Its state; nullopt if there is none.
  std::optional<State> Counting() const SILTFS_EXCLUDES(mutex_);
  // Adds a quota without usage, whose inodes will be counted. False if another one is being
  // counted.
  bool BeginCount(QuotaNumber quota, const QuotaRecord& record) SILTFS_EXCLUDES(mutex_);
  // The directory has got the number of the quota in a rename, and its entries must be counted.
  void AddToCount(InodeNumber directory) SILTFS_EXCLUDES(mutex_);
  // Removes and returns these directories; none unless this quota is being counted.
  std::vector<InodeNumber> TakeToCount(QuotaNumber quota) SILTFS_EXCLUDES(mutex_);
  // After the records of the quota were applied: it has effect from now on.
  void EndCount(QuotaNumber quota) SILTFS_EXCLUDES(mutex_);

  // After the change of metadata was applied. SetLimits leaves the usage.
  void SetLimits(QuotaNumber quota, const QuotaLimits& limits) SILTFS_EXCLUDES(mutex_);
  void Remove(QuotaNumber quota) SILTFS_EXCLUDES(mutex_);

 private:
  struct Known {
    QuotaRecord record;
    QuotaUsage usage;
    QuotaUsage reserved;
  };
  void Release(QuotaNumber quota, const QuotaUsage& room) SILTFS_EXCLUDES(mutex_);
  // Null if there is no such quota.
  Known* At(QuotaNumber quota) SILTFS_REQUIRES(mutex_);
  void StopCount(QuotaNumber quota) SILTFS_REQUIRES(mutex_);
  bool None(QuotaNumber quota) const {
    return quota == kNoQuota || !any_.load(std::memory_order_acquire);
  }

  std::atomic<bool> any_{false};
  std::atomic<bool> counting_{false};  // whether counting_number_ is set
  mutable Mutex mutex_;
  CondVar released_;
  QuotaNumber counting_number_ SILTFS_GUARDED_BY(mutex_) = kNoQuota;
  std::vector<InodeNumber> to_count_ SILTFS_GUARDED_BY(mutex_);
  std::map<QuotaNumber, Known> quotas_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
