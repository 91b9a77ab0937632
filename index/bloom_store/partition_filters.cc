// The filters and the chain of an instance in memory: they are made, loaded and dropped.
#include <algorithm>
#include <optional>
#include <utility>

#include "index/bloom_store/bloom_store_partition.h"

namespace siltfs {

Status BloomStorePartition::MakeFilters(std::span<DataPage> pages,
                                        std::optional<BloomFilter>& prefilter) const {
  bool whole = true;
  for (DataPage& made : pages) {
    if (made.filter != nullptr && !prefilter) continue;
    SILTFS_RETURN_IF_ERROR(
        ReadDataPages(files(), {&made.page, 1}, [&](uint32_t, std::optional<ConstPageBytes> page) {
          if (made.filter == nullptr) {
            made.filter = std::make_shared<BloomFilter>(FilterOf(shape_, page));
          }
          whole = whole && page;
          for (size_t i = 0; prefilter && page && i < RecordsOf(shape_, *page); ++i) {
            prefilter->Add(shape_.layout.HashAt(*page, i));
          }
          return Status::Ok();
        }));
  }
  // Without the entries of a damaged page, a prefilter would hide that they are lost.
  if (!whole) prefilter.reset();
  return Status::Ok();
}

Result<std::optional<BloomFilter>> BloomStorePartition::PrefilterOf(
    const FilterChain& chain) const {
  std::optional<BloomFilter> prefilter;
  if (chain.columns == 0) {
    prefilter.emplace(shape_.prefilter);
    return prefilter;
  }
  if (!chain.has_prefilter(shape_)) return prefilter;
  SILTFS_ASSIGN_OR_RETURN(prefilter, ReadPrefilter(files(), shape_, chain));
  if (prefilter) return prefilter;
  CountDamage(chain);
  SILTFS_ASSIGN_OR_RETURN(const auto addresses, ReadAddresses(files(), shape_, chain));
  if (!addresses) return prefilter;
  prefilter.emplace(shape_.prefilter);
  std::vector<DataPage> pages;
  for (const PageAddress page : *addresses) pages.push_back({.page = page, .filter = nullptr});
  SILTFS_RETURN_IF_ERROR(MakeFilters(pages, prefilter));
  return prefilter;
}

void BloomStorePartition::CountDamage(const FilterChain& chain) const {
  if (!chain.damage_counted->exchange(true)) ++context().damaged_filters;
}

void BloomStorePartition::DropFilters() {
  filters_dropped_ = true;
  BloomStoreState state = version()->state();
  for (DataPage& page : state.recent) page.filter.reset();
  state.prefilter.reset();
  InstallState(std::move(state), /*buffer_is_written=*/false);
}

uint64_t BloomStorePartition::DroppedFilterBytes() const {
  if (!filters_dropped_) return 0;
  const uint64_t pages =
      std::max<uint64_t>(shape_.buffered_filters, version()->state().recent.size());
  return pages * shape_.filter.bytes() + (shape_.has_prefilter ? shape_.prefilter.bytes() : 0);
}

Status BloomStorePartition::LoadFilters() {
  const PageFiles::FilePin pin = files().Pin();
  BloomStoreState state = version()->state();
  std::optional<BloomFilter> prefilter;
  if (shape_.has_prefilter) {
    SILTFS_ASSIGN_OR_RETURN(prefilter, PrefilterOf(state.chain));
  }
  SILTFS_RETURN_IF_ERROR(MakeFilters(state.recent, prefilter));
  if (prefilter) state.prefilter = std::make_shared<BloomFilter>(std::move(*prefilter));
  filters_dropped_ = false;
  InstallState(std::move(state), /*buffer_is_written=*/false);
  return Status::Ok();
}

void BloomStorePartition::DropExtras() {
  BloomStoreState state = version()->state();
  if (state.chain.rows == nullptr) return;
  state.chain.rows.reset();
  InstallState(std::move(state), /*buffer_is_written=*/false);
}

bool BloomStorePartition::HasDroppedExtras() const { return DroppedExtraBytes() > 0; }

uint64_t BloomStorePartition::DroppedExtraBytes() const {
  const auto version = this->version();
  const FilterChain& chain = version->state().chain;
  if (chain.columns == 0 || chain.rows != nullptr || chain_is_lost_) return 0;
  return shape_.rows_bytes() + chain.columns * sizeof(PageAddress);
}

Status BloomStorePartition::LoadExtras() {
  const PageFiles::FilePin pin = files().Pin();
  BloomStoreState state = version()->state();
  SILTFS_ASSIGN_OR_RETURN(auto read, ReadWholeChain(files(), shape_, state.chain));
  chain_is_lost_ = !read;
  if (!read) return Status::Ok();
  if (read->damaged) CountDamage(state.chain);
  state.chain.rows = std::make_shared<ChainRows>(std::move(read->rows));
  InstallState(std::move(state), /*buffer_is_written=*/false);
  return Status::Ok();
}

}  // namespace siltfs
