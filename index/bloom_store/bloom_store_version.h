// The part of a BloomStore instance that is on flash, at one moment: the chain, and the newest data
// pages, whose filters are not in the chain yet.
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <memory>
#include <vector>

#include "index/bloom_store/filter_chain.h"
#include "index/flash/flash_partition.h"

namespace siltfs {

struct BloomStoreState {
  FilterChain chain;
  std::vector<DataPage> recent;  // the oldest first
  // Of all entries on flash. Null: not in memory, or the engine has none.
  std::shared_ptr<const BloomFilter> prefilter;

  uint64_t filters() const { return chain.columns + recent.size(); }
  uint64_t entries() const;
  // The memory of the filters that lookups need first, and of the chain.
  uint64_t recent_bytes() const;
  uint64_t filter_bytes() const;
};

class BloomStoreVersion final : public FlashVersion {
 public:
  BloomStoreVersion(FlashContext& context, const BloomStoreShape& shape, BloomStoreState state)
      : context_(context), shape_(shape), state_(std::move(state)) {}

  std::optional<PageAddress> NextPage(LookupState& lookup) const override;
  void Take(LookupState& lookup, std::optional<ConstPageBytes> page) const override;
  Status Collect(const Add& add, uint64_t& damaged_pages) const override;
  Status Verify(const ReportFault& report) const override;

  const BloomStoreState& state() const { return state_; }
  uint64_t filter_bytes() const { return state_.filter_bytes(); }

 private:
  std::optional<PageAddress> NextOfChain(LookupState& lookup) const;
  void TakeChainPage(LookupState& lookup, std::optional<ConstPageBytes> page) const;
  // The addresses of all data pages, the oldest first. Counts a page if the chain's are lost.
  Result<std::vector<PageAddress>> AllDataPages(uint64_t& damaged_pages) const;

  FlashContext& context_;
  const BloomStoreShape shape_;
  const BloomStoreState state_;
};

}  // namespace siltfs
