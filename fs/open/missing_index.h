// An index without entries, for a read-only mount of a store with a missing or damaged index. All
// blocks are then replayed into memory instead (ChunkStore's `unindexed`).
#pragma once

#include "index/chunk_index.h"

namespace siltfs {

class MissingIndex final : public ChunkIndex {
 public:
  MissingIndex() : ChunkIndex(true) {}

 private:
  Status GetImpl(std::span<const ChunkName>, std::span<std::optional<Location>>) override {
    return Status::Ok();  // the results have been cleared
  }
  // Never called: the index is read-only.
  Status PutImpl(std::span<const IndexEntry>, uint64_t) override { return Status::Ok(); }
  Status DeleteImpl(const ChunkName&) override { return Status::Ok(); }
  Status FlushImpl(uint64_t) override { return Status::Ok(); }

  uint64_t DurableSequenceImpl() const override { return 0; }
  Status ForEachImpl(const Visit&) override { return Status::Ok(); }
  uint64_t OrderOfImpl(const ChunkName& name) const override { return name.Prefix64(); }
  Status VerifyImpl(const std::function<void(const IndexFinding&)>&) override {
    return Status::Ok();
  }
  IndexStats StatsImpl() const override {
    IndexStats stats;
    stats.engine = "none";
    return stats;
  }
  Status CloseImpl(uint64_t) override { return Status::Ok(); }
};

}  // namespace siltfs
