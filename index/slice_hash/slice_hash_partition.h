// A partition of a SliceHash index: a cuckoo table in memory, and slicetables on flash.
//
// Thread-safety, errors: flash_partition.h. Memory: while a buffer is written, the slicetable that
// is read and written passes through memory; it counts as memory of buffers.
#pragma once

#include <memory>
#include <vector>

#include "index/flash/buffered_partition.h"
#include "index/flash/entry_table.h"
#include "index/slice_hash/slice_hash_version.h"

namespace siltfs {

struct SliceHashOptions {
  SliceShape shape;
  uint32_t directories = 1;
  // False: the partitions are distributed over the directories. True: each partition has a
  // slicetable in each directory.
  bool spread = false;
  uint32_t channels = 32;  // of a device
  uint32_t chunk_pages = 2;
  bool reorder = true;

  uint32_t tables() const { return spread ? directories : 1; }
  uint64_t Capacity() const { return shape.Capacity() * tables(); }
};

class SliceHashPartition final : public BufferedPartition<EntryTable, SliceHashVersion> {
 public:
  SliceHashPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix,
                     const SliceHashOptions& options);
  // kCorruption if `state` is not as Encode writes it.
  static Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                                      const HashPrefix& prefix,
                                                      const SliceHashOptions& options,
                                                      ByteView state);

  // The log of a directory. A single directory is that of the index.
  static constexpr size_t kIndexLog = 0;
  static constexpr size_t kFirstDeviceLog = 1;

  std::shared_ptr<const FlashVersion> Begin(LookupState& state) const override;
  uint32_t ChannelOf(uint64_t hash) const override;
  void AddStats(std::vector<IndexComponentStats>& stats) const override;

  bool WantsRewrite() const override;
  Status WriteBuffer() override;
  Status Fill(std::span<const FlashEntry> entries) override;
  uint64_t MostEntries() const override { return options_.Capacity() * 3 / 4; }
  void ForEachFile(const VisitFile& visit) const override;
  void ReleaseAll() override;
  std::string Encode() const override;

  void DropFilters() override;
  bool HasDroppedFilters() const override { return DroppedFilterBytes() > 0; }
  uint64_t DroppedFilterBytes() const override;
  Status LoadFilters() override;

 private:
  // The directory of the partition's i-th slicetable, and the log there.
  uint32_t DirectoryOf(size_t table) const {
    return static_cast<uint32_t>((id() + table) % options_.directories);
  }
  size_t LogOf(size_t table) const {
    return options_.directories == 1 ? kIndexLog : kFirstDeviceLog + DirectoryOf(table);
  }
  // Writes the i-th slicetable (WriteSliceTable).
  Result<SliceTable> Write(size_t table, SlicePlacement& placement, uint32_t most_incarnations);
  // Replaces the version; also empties the buffer if `buffer_is_written`.
  void InstallAll(std::vector<SliceTable> tables, bool buffer_is_written);
  void Release(const SliceTable& table);

  const SliceHashOptions options_;
  const SliceShape& shape_;  // of options_
};

}  // namespace siltfs
