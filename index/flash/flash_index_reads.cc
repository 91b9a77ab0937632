#include "index/flash/flash_index_impl.h"

#include <fmt/format.h>

#include "index/flash/channel_order.h"
#include "index/flash/entry_listing.h"
#include "index/flash/lookup_batch.h"

namespace siltfs {
class FlashIndex::GetBatch final : public LookupBatch<FlashLookup> {
 public:
  GetBatch(FlashIndex& index, std::span<const ChunkName> names,
           std::span<std::optional<Location>> results)
      : index_(index),
        names_(names),
        results_(results),
        pin_(index.files_.Pin()),
        partitions_(index.partitions()) {
    if (names.size() > kFewLookups) SpreadOut();
  }
  ~GetBatch() override {
    index_.flash_reads_.fetch_add(pages_read_, std::memory_order_relaxed);
    if (damaged_pages_ > 0) index_.CountDamage(damaged_pages_);
  }

  size_t size() const override { return names_.size(); }
  FlashLookup Prepare(size_t i) override {
    return FlashLookup(index_.name_hash_.Of(names_[NameNumber(i)]));
  }
  void Begin(FlashLookup& lookup) override {
    lookup.Begin(partitions_->Find(lookup.hash()), index_.files_);
  }
  void End(size_t i, const FlashLookup& lookup) override {
    pages_read_ += lookup.pages_read();
    damaged_pages_ += lookup.damaged_pages();
    if (!lookup.status().ok()) {
      if (status_.ok()) status_ = lookup.status();
      return;
    }
    const auto& found = lookup.found();
    if (found && !found->tombstone()) results_[NameNumber(i)] = found->location;
  }

  Status TakeStatus() { return std::move(status_); }

 private:
  size_t NameNumber(size_t i) const { return order_.empty() ? i : order_[i]; }
  // Spreads the lookups over the device's channels, if the engine knows them.
  void SpreadOut() {
    const uint32_t channels = index_.engine_->channels();
    if (channels == 0) return;
    std::vector<uint32_t> channel_of_name;
    channel_of_name.reserve(names_.size());
    for (const ChunkName& name : names_) {
      const uint64_t hash = index_.name_hash_.Of(name);
      channel_of_name.push_back(partitions_->Find(hash).ChannelOf(hash));
    }
    order_ = SpreadOverChannels(channel_of_name, channels);
  }

  FlashIndex& index_;
  const std::span<const ChunkName> names_;
  const std::span<std::optional<Location>> results_;
  const PageFiles::FilePin pin_;  // older than the partitions
  const std::shared_ptr<const PartitionMap> partitions_;
  std::vector<uint32_t> order_;  // of the lookups, as numbers of names; empty: as they come
  uint64_t pages_read_ = 0;
  uint64_t damaged_pages_ = 0;
  Status status_;
};

Status FlashIndex::GetImpl(std::span<const ChunkName> names,
                           std::span<std::optional<Location>> results) {
  GetBatch batch(*this, names, results);
  SILTFS_RETURN_IF_ERROR(RunBatch(batch, readers_));
  return batch.TakeStatus();
}

// The partitions are pinned one at a time, so that files can be removed meanwhile.
Status FlashIndex::ForEachImpl(const Visit& visit) {
  for (uint64_t cursor = 0;;) {
    EntryListing listing;
    uint64_t last = 0;
    {
      const PageFiles::FilePin pin = files_.Pin();
      const auto partitions = this->partitions();
      const FlashPartition& partition = partitions->Find(cursor);
      last = partition.prefix().last();
      SILTFS_ASSIGN_OR_RETURN(listing, ListEntries(partition.TakeSnapshot()));
    }
    if (listing.damaged_pages > 0) CountDamage(listing.damaged_pages);
    for (const FlashEntry& entry : listing.entries) {
      if (entry.hash < cursor) continue;
      SILTFS_RETURN_IF_ERROR(visit({entry.hash, entry.location}));
    }
    if (last == UINT64_MAX) return Status::Ok();
    cursor = last + 1;
  }
}

// The files, and then the partitions, are pinned one at a time.
Status FlashIndex::VerifyImpl(const Report& report) {
  SILTFS_RETURN_IF_ERROR(files_.Verify([&](const std::string& path, uint64_t offset) {
    report({.code = "page-checksum",
            .path = path,
            .offset = offset,
            .text = fmt::format("{}: the page at {} is damaged", path, offset)});
  }));
  for (uint64_t cursor = 0;;) {
    const PageFiles::FilePin pin = files_.Pin();
    const auto partitions = this->partitions();  // a concurrent Put may replace the map
    const FlashPartition& partition = partitions->Find(cursor);
    SILTFS_RETURN_IF_ERROR(VerifyPartition(partition, report));
    if (partition.prefix().last() == UINT64_MAX) return Status::Ok();
    cursor = partition.prefix().last() + 1;
  }
}

Status FlashIndex::VerifyPartition(const FlashPartition& partition, const Report& report) const {
  const PartitionSnapshot snapshot = partition.TakeSnapshot();
  const auto fault = [&](const std::string& code, const std::string& text) {
    report({.code = code,
            .path = options_.directory,
            .offset = std::nullopt,
            .text = fmt::format("{}: partition {}: {}", options_.directory, partition.id(), text)});
  };
  for (const FlashEntry& entry : snapshot.buffered) {
    if (!partition.prefix().Has(entry.hash)) fault("entry-partition", "has a foreign entry");
  }
  if (snapshot.version == nullptr) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const EntryListing listing, ListEntries(snapshot));
  for (const FlashEntry& entry : listing.entries) {
    if (partition.prefix().Has(entry.hash)) continue;
    fault("entry-partition", fmt::format("has the foreign entry {:016x}", entry.hash));
    break;
  }
  return snapshot.version->Verify(fault);
}

void FlashIndex::CountDamage(uint64_t pages) const {
  damaged_pages_.fetch_add(pages, std::memory_order_relaxed);
}

}  // namespace siltfs
