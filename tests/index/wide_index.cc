#include "wide_index.h"

#include <algorithm>

#include "index/silt/silt_engine.h"
#include "store/base/random.h"

namespace siltfs::testing {
namespace {

class WideIndex final : public ChunkIndex {
 public:
  WideIndex(std::unique_ptr<SiltEngine> engine, bool read_only)
      : ChunkIndex(read_only), engine_(std::move(engine)) {}

 private:
  // Returns the further bytes of an entry. Often they are fewer than its slot has room for.
  Bytes RestOf(const IndexEntry& entry) const {
    Random random(entry.name.Prefix64() ^ entry.location.ordinal ^
                  uint64_t{entry.location.block_offset} << 20);
    Bytes rest(random.Below(engine_->layout().rest_size() + 1));
    random.Fill(rest);
    return rest;
  }

  // Returns whether the slot holds the further bytes of its entry, followed by zeros.
  bool IsIntact(const SlotEntry& entry) const {
    Bytes rest = RestOf(entry);
    rest.resize(engine_->layout().rest_size());
    return std::ranges::equal(rest, entry.rest);
  }

  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override {
    return engine_->Get(names, [&](size_t i, const SlotEntry& entry) {
      if (IsIntact(entry)) results[i] = entry.location;
    });
  }
  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override {
    SILTFS_RETURN_IF_ERROR(engine_->BeginPut(complete));
    for (const IndexEntry& entry : entries) {
      const Bytes rest = RestOf(entry);
      SILTFS_RETURN_IF_ERROR(engine_->Enter({entry, rest}));
    }
    return engine_->EndPut(entries.size());
  }
  Status DeleteImpl(const ChunkName& name) override { return engine_->Delete(name); }
  Status FlushImpl(uint64_t complete) override { return engine_->Flush(complete); }
  Status WaitUntilOpenImpl() override { return engine_->WaitUntilOpen(); }
  Status SetMemoryLimitImpl(uint64_t bytes) override { return engine_->SetMemoryLimit(bytes); }
  uint64_t DurableSequenceImpl() const override { return engine_->durable_sequence(); }
  Status ForEachImpl(const Visit& visit) override {
    return engine_->ForEach([&](const OrderKey& key, const SlotEntry& entry) -> Status {
      return IsIntact(entry) ? visit({key.hash, entry.location}) : Status::Ok();
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

Result<std::unique_ptr<ChunkIndex>> OpenWideIndex(Env& env, const SiltIndexOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(auto engine, SiltEngine::Open(env, options, nullptr));
  return std::unique_ptr<ChunkIndex>(new WideIndex(std::move(engine), options.read_only));
}

}  // namespace siltfs::testing
