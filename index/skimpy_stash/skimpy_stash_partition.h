// A partition of a SkimpyStash index: a buffer of one page and a directory in memory, and a
// circular log of records on flash.
//
// A full buffer, or an old one, is appended to the log as one page. The directory changes in place,
// under the partition's lock; Begin copies the pointers that its lookup needs, and TakeSnapshot
// copies the whole directory. A file of the log is released when all of its records are orphans.
//
// Now and then the directory is written to flash. Open reads it and the pages of the log that were
// appended later; without it, the whole log.
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <memory>
#include <vector>

#include "index/flash/entry_table.h"
#include "index/flash/flash_partition.h"
#include "index/skimpy_stash/chain_collector.h"
#include "index/skimpy_stash/skimpy_stash_version.h"

namespace siltfs {

class SkimpyStashPartition final : public FlashPartition {
 public:
  static constexpr size_t kRecordLog = 0;  // a stream of its own for each partition
  static constexpr size_t kDirectoryLog = 1;
  // The directory is written again when the log has grown by this many times its pages.
  static constexpr uint32_t kDirectoryInterval = 8;

  // Since the partition was made or opened.
  struct Tally {
    uint64_t pages_written = 0;    // of the log
    uint64_t directory_pages = 0;  // written
    uint64_t collected_chains = 0;
    uint64_t collected_records = 0;  // written again
    uint64_t released_files = 0;
    uint64_t collector_reads = 0;  // pages
  };

  SkimpyStashPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix,
                       const SkimpyStashShape& shape);
  // kCorruption if `state` is not as Encode writes it, or if a page is damaged that the directory
  // depends on.
  static Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                                      const HashPrefix& prefix,
                                                      const SkimpyStashShape& shape,
                                                      ByteView state);

  std::shared_ptr<const FlashVersion> Begin(LookupState& state) const override;
  PartitionSnapshot TakeSnapshot() const override;
  void AddStats(std::vector<IndexComponentStats>& stats) const override;
  uint64_t buffered_entries() const override;

  bool Insert(const FlashEntry& entry) override;
  void InsertReplayed(const FlashEntry& entry) override;
  bool WantsRewrite() const override;
  Status WriteBuffer() override;
  Status Fill(std::span<const FlashEntry> entries) override;
  uint64_t MostEntries() const override { return shape_.capacity * 3 / 4; }
  void ForEachFile(const VisitFile& visit) const override;
  void ReleaseAll() override;
  std::string Encode() const override;

  void DropFilters() override;
  bool HasDroppedFilters() const override;
  uint64_t DroppedFilterBytes() const override;
  Status LoadFilters() override;

  Tally tally() const;
  // The number of entries of each bucket, by counts. Empty without filters.
  std::vector<uint8_t> counts() const;

 private:
  // What the directory on flash covers.
  struct WrittenDirectory {
    PageAddress first;  // none: it was never written
    uint32_t pages = 0;
    uint32_t log_pages = 0;  // the number of the log's next page then
    bool filters = false;
    bool damaged = false;
  };
  enum class Source { kBuffer, kListing, kCollector };

  std::shared_ptr<const SkimpyStashVersion> version() const;
  Status Resume(ChainLog log, const WrittenDirectory& written, uint64_t entries);
  // Reads the directory, from what is on flash. Returns false if a page of the log is damaged.
  Result<bool> Recover(BucketDirectory& directory, bool with_filters);
  // Appends records to the log at once, and enters them into the directory.
  Status Append(std::span<ChainRecord> records, Source source);
  // Collect begins when so many records are obsolete.
  static int64_t GroupGarbage(const SkimpyStashShape& shape);
  Status Collect();
  void ReleaseOrphans();
  Status WriteDirectory();
  void AccountMemory() SILTFS_REQUIRES(mutex_);

  const SkimpyStashShape shape_;
  MemoryShare buffer_share_;
  MemoryShare table_share_;
  MemoryShare filter_share_;
  ChainCollector collector_;
  // Records that became obsolete, less those that were paid for with a collected chain each.
  int64_t garbage_ = 0;
  bool filters_are_lost_ = false;  // a page is damaged that they depend on

  mutable SharedMutex mutex_;
  EntryTable buffer_ SILTFS_GUARDED_BY(mutex_);
  // When the buffer got its first entry; monotonic. 0 without a limit, and for replayed entries.
  int64_t buffer_begin_ SILTFS_GUARDED_BY(mutex_) = 0;
  BucketDirectory directory_ SILTFS_GUARDED_BY(mutex_);
  std::shared_ptr<const SkimpyStashVersion> version_ SILTFS_GUARDED_BY(mutex_);  // never null
  WrittenDirectory written_ SILTFS_GUARDED_BY(mutex_);
  Tally tally_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
