// A chunk index that passes every call on to another index. A test can make it give wrong answers,
// lose entries or fail, to test that index entries are only hints.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"

namespace siltfs::testing {

class HintIndex : public ChunkIndex {
 public:
  explicit HintIndex(std::unique_ptr<ChunkIndex> inner) : inner_(std::move(inner)) {}

  // From now on Get returns `location` for the name. Empty: as if the index had lost the entry.
  void Say(const ChunkName& name, std::optional<Location> location);
  // From now on Get returns the true location of the name again.
  void TellTruth(const ChunkName& name);
  // From now on all Puts, Gets or Flushes fail with `failure`; OK ends this.
  void FailPuts(Status failure);
  void FailPutsOfEntries(Status failure);  // Puts without entries succeed
  void FailGets(Status failure);
  void FailFlushes(Status failure);
  // Puts wait from now on, until LetPutsGo.
  void HoldPuts();
  void LetPutsGo();
  // For each successful Put of entries, the sequence up to which the index was then complete.
  std::vector<uint64_t> complete() const;

 private:
  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override;
  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override;
  Status DeleteImpl(const ChunkName& name) override { return inner_->Delete(name); }
  Status FlushImpl(uint64_t) override;
  uint64_t DurableSequenceImpl() const override { return inner_->durable_sequence(); }
  Status ForEachImpl(const Visit& visit) override { return inner_->ForEach(visit); }
  uint64_t OrderOfImpl(const ChunkName& name) const override { return inner_->OrderOf(name); }
  void SetGoneImpl(std::function<bool(SegmentId)> gone) override {
    inner_->SetGone(std::move(gone));
  }
  Result<bool> DropGoneImpl(size_t, uint64_t) override {
    SILTFS_RETURN_IF_ERROR(inner_->DropGone());
    return false;
  }
  Status VerifyImpl(const std::function<void(const IndexFinding&)>& report) override {
    return inner_->Verify(report);
  }
  IndexStats StatsImpl() const override { return inner_->stats(); }
  Status CloseImpl(uint64_t) override { return inner_->Close(); }

  const std::unique_ptr<ChunkIndex> inner_;
  mutable Mutex mutex_;
  std::unordered_map<ChunkName, std::optional<Location>> lies_ SILTFS_GUARDED_BY(mutex_);
  Status put_failure_ SILTFS_GUARDED_BY(mutex_);
  Status entries_failure_ SILTFS_GUARDED_BY(mutex_);
  std::vector<uint64_t> complete_ SILTFS_GUARDED_BY(mutex_);
  Status get_failure_ SILTFS_GUARDED_BY(mutex_);
  Status flush_failure_ SILTFS_GUARDED_BY(mutex_);
  CondVar let_go_;
  bool held_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs::testing
