// A partition of a BloomStore index, which the paper calls an instance: a page of entries in
// memory, the filters of the newest data pages, and a chain of filters on flash.
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/bloom_store/bloom_store_version.h"
#include "index/bloom_store/page_buffer.h"
#include "index/flash/buffered_partition.h"

namespace siltfs {

class BloomStorePartition final : public BufferedPartition<PageBuffer, BloomStoreVersion> {
 public:
  BloomStorePartition(FlashContext& context, uint64_t id, const HashPrefix& prefix,
                      const BloomStoreShape& shape);
  // kCorruption if `state` is not as Encode writes it.
  static Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                                      const HashPrefix& prefix,
                                                      const BloomStoreShape& shape, ByteView state);

  void AddStats(std::vector<IndexComponentStats>& stats) const override;

  bool WantsRewrite() const override;
  Status WriteBuffer() override;
  Status Fill(std::span<const FlashEntry> entries) override;
  uint64_t MostEntries() const override { return shape_.Capacity() * 3 / 4; }
  void ForEachFile(const VisitFile& visit) const override;
  // Writes the chain again if the file has it.
  Result<bool> MoveOut(uint64_t file) override;
  void ReleaseAll() override;
  std::string Encode() const override;

  // The filters of the newest data pages, and the prefilter. Without memory for them, WriteBuffer
  // writes the chain each time.
  void DropFilters() override;
  bool HasDroppedFilters() const override { return filters_dropped_; }
  uint64_t DroppedFilterBytes() const override;
  Status LoadFilters() override;
  Result<bool> WriteDroppedFilters() override;
  // The chain.
  void DropExtras() override;
  bool HasDroppedExtras() const override;
  uint64_t DroppedExtraBytes() const override;
  Status LoadExtras() override;

 private:
  // Replaces the version; also empties the buffer if `buffer_is_written`.
  void InstallState(BloomStoreState state, bool buffer_is_written);
  // Writes entries to data pages, and the chain if it is time. Releases the old chain.
  Status Append(std::span<const FlashEntry> entries, bool buffer_is_written);
  // Moves the filters of the oldest recent data pages into a new chain. Leaves `state` as it is if
  // the chain is lost. Changes nothing but `state`.
  Result<bool> ReplaceChain();
  Status MoveToChain(BloomStoreState& state);
  // Makes the missing filters of data pages. Adds all entries of the pages to the prefilter, unless
  // it is null; resets it if a page is damaged.
  Status MakeFilters(std::span<DataPage> pages, std::optional<BloomFilter>& prefilter) const;
  // The prefilter of a chain; nothing if it cannot be made.
  Result<std::optional<BloomFilter>> PrefilterOf(const FilterChain& chain) const;
  void CountDamage(const FilterChain& chain) const;

  const BloomStoreShape shape_;
  // Used only by the writing calls.
  bool filters_dropped_ = false;
  bool chain_is_lost_ = false;  // all of its pages are damaged
};

}  // namespace siltfs
