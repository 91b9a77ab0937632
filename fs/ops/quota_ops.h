// Sets, removes and shows quotas (fs/interface/directory_quotas.h).
//
// A new quota gets a number that no inode has and that was never used. Set writes this number into
// each inode below the directory, and adds up their usage, while operations run (quota_counter.h).
// At last it adds the records of the quota, while the gate keeps operations out. Until then the
// number has no meaning, so a crash or an error leaves no quota.
//
// Thread-safety: every call from any thread. Memory: that of QuotaCounter. Errors: those of
// DirectoryQuotas.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/directory_quotas.h"
#include "fs/meta/id_allocator.h"
#include "fs/ops/directory_names.h"
#include "fs/ops/quota_counter.h"

namespace siltfs {

class QuotaOps final : public DirectoryQuotas {
 public:
  // The arguments must outlive it. `ids` is null when read-only. `enable` makes other versions of
  // siltfs refuse the store, durably; it is called before the first number is written.
  QuotaOps(const StoreContext& store, IdAllocator* ids, OperationGate& gate, InodeStore& inodes,
           ChangeApplier& changes, DirectoryNames& names, std::function<Status()> enable)
      : store_(store),
        ids_(ids),
        gate_(gate),
        inodes_(inodes),
        changes_(changes),
        names_(names),
        enable_(std::move(enable)) {}

  Result<QuotaInfo> Set(InodeNumber directory, const WantedLimits& limits,
                        const std::function<Status()>& check) override;
  Status Remove(InodeNumber directory) override;
  Result<std::vector<QuotaInfo>> List() override;
  Result<std::optional<QuotaInfo>> Of(InodeNumber inode) override;
  uint64_t counted() const override { return counted_; }

 private:
  Result<OperationGate::Closure> KeepOperationsOut();
  // The quota whose directory this is.
  std::optional<Quotas::State> OfDirectory(InodeNumber directory) const;
  Status CheckNotNested(InodeNumber directory) const;
  Status SetLimits(const Quotas::State& state, const QuotaLimits& limits);
  // The directory must exist, and be a directory.
  Status CheckPresent(InodeNumber directory);
  // The number of the new quota, whose inodes must be counted.
  Result<QuotaNumber> Begin(const QuotaRecord& record);
  Status CountAndMake(InodeNumber directory, QuotaNumber number,
                      const std::function<Status()>& check);
  // Counts what is left, and gives the quota its records. The gate must be closed.
  Status Make(InodeNumber directory, QuotaNumber number, QuotaCounter& counter);
  QuotaInfo InfoOf(const Quotas::State& state) const;

  const StoreContext& store_;
  IdAllocator* const ids_;
  OperationGate& gate_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  DirectoryNames& names_;
  const std::function<Status()> enable_;
  std::atomic<uint64_t> counted_ = 0;
};

}  // namespace siltfs
