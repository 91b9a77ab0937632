// A partition of a BufferHash index: a cuckoo table in memory, and incarnations on flash, each with
// a Bloom filter in memory.
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <memory>
#include <vector>

#include "index/buffer_hash/incarnation.h"
#include "index/flash/buffered_partition.h"
#include "index/flash/entry_table.h"

namespace siltfs {

struct BufferHashShape {
  EntryTable::Shape table;
  uint32_t incarnations = 16;  // at most, in a partition
  IncarnationFormat format;

  // Entries of a partition whose incarnations were made from full tables.
  uint64_t Capacity() const { return table.places() * incarnations; }
};

class BufferHashVersion final : public FlashVersion {
 public:
  BufferHashVersion(const FlashContext& context, const BufferHashShape& shape,
                    const HashPrefix& prefix, std::vector<Incarnation> incarnations)
      : files_(context.files),
        shape_(shape),
        prefix_(prefix),
        incarnations_(std::move(incarnations)) {}

  std::optional<PageAddress> NextPage(LookupState& state) const override;
  void Take(LookupState& state, std::optional<ConstPageBytes> page) const override;
  Status Collect(const Add& add, uint64_t& damaged_pages) const override;
  Status Verify(const ReportFault& report) const override;

  // Oldest first.
  const std::vector<Incarnation>& incarnations() const { return incarnations_; }
  uint64_t entries() const;
  uint64_t pages() const;
  uint64_t filter_bytes() const;

 private:
  Status VerifyOne(const Incarnation& incarnation, const ReportFault& report) const;

  const PageFiles& files_;
  const BufferHashShape shape_;
  const HashPrefix prefix_;
  const std::vector<Incarnation> incarnations_;
};

class BufferHashPartition final : public BufferedPartition<EntryTable, BufferHashVersion> {
 public:
  BufferHashPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix,
                      const BufferHashShape& shape);
  // kCorruption if `state` is not as Encode writes it.
  static Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                                      const HashPrefix& prefix,
                                                      const BufferHashShape& shape, ByteView state);

  void AddStats(std::vector<IndexComponentStats>& stats) const override;

  bool WantsRewrite() const override;
  Status WriteBuffer() override;
  Status Fill(std::span<const FlashEntry> entries) override;
  uint64_t MostEntries() const override { return shape_.Capacity() * 3 / 4; }
  void ForEachFile(const VisitFile& visit) const override;
  void ReleaseAll() override;
  std::string Encode() const override;

  void DropFilters() override;
  bool HasDroppedFilters() const override;
  uint64_t DroppedFilterBytes() const override;
  Status LoadFilters() override;

 private:
  // Replaces the version; also empties the buffer if `buffer_is_written`.
  void InstallAll(std::vector<Incarnation> incarnations, bool buffer_is_written);

  const BufferHashShape shape_;
};

}  // namespace siltfs
