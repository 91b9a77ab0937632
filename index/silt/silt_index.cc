#include "index/silt/silt_index.h"

#include "index/silt/silt_engine.h"

namespace siltfs {
namespace {

class SiltIndex final : public ChunkIndex {
 public:
  SiltIndex(std::unique_ptr<SiltEngine> engine, bool read_only)
      : ChunkIndex(read_only), engine_(std::move(engine)) {}

 private:
  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override {
    return engine_->Get(
        names, [results](size_t i, const SlotEntry& entry) { results[i] = entry.location; });
  }

  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override {
    SILTFS_RETURN_IF_ERROR(engine_->BeginPut(complete));
    for (const IndexEntry& entry : entries) SILTFS_RETURN_IF_ERROR(engine_->Enter(entry));
    return engine_->EndPut(entries.size());
  }

  Status DeleteImpl(const ChunkName& name) override { return engine_->Delete(name); }
  Status FlushImpl(uint64_t complete) override { return engine_->Flush(complete); }
  Status WaitUntilOpenImpl() override { return engine_->WaitUntilOpen(); }
  Status SetMemoryLimitImpl(uint64_t bytes) override { return engine_->SetMemoryLimit(bytes); }
  uint64_t DurableSequenceImpl() const override { return engine_->durable_sequence(); }
  Status ForEachImpl(const Visit& visit) override {
    return engine_->ForEach([&](const OrderKey& key, const SlotEntry& entry) {
      return visit({key.hash, entry.location});
    });
  }
  uint64_t OrderOfImpl(const ChunkName& name) const override { return engine_->OrderOf(name); }
  void SetGoneImpl(std::function<bool(SegmentId)> gone) override {
    engine_->SetGone(std::move(gone));
  }
  Result<bool> DropGoneImpl(size_t part, uint64_t complete) override {
    return engine_->DropGone(part, complete);
  }
  Status VerifyImpl(const std::function<void(const IndexFinding&)>& report) override {
    return engine_->Verify(report);
  }
  IndexStats StatsImpl() const override { return engine_->stats(); }
  Status CloseImpl(uint64_t complete) override { return engine_->Close(complete); }

  const std::unique_ptr<SiltEngine> engine_;
};

}  // namespace

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options) {
  if (!options.layout.hashed() && options.layout.rest_size() != 0) {
    return Status(StatusCode::kInvalidArgument, "a chunk index has no data for larger slots");
  }
  SILTFS_ASSIGN_OR_RETURN(auto engine, SiltEngine::Open(env, options, nullptr));
  return std::unique_ptr<ChunkIndex>(new SiltIndex(std::move(engine), options.read_only));
}

}  // namespace siltfs
