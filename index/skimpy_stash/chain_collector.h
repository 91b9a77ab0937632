// The garbage collector of a SkimpyStash partition: it takes the oldest page of the log that still
// has records of chains, and collects these chains as a whole ("SkimpyStash", section 4.6). The
// valid records of several chains are written together at the log's tail, so that a page is full;
// all old records of the chains become orphans. A page without records of chains is skipped without
// a read, because the collector counts them: 2 bytes of memory for each page.
//
// Thread-safety: none. Errors: kIoError; then nothing has changed. Damage: a collector that finds a
// damaged page collects no more. The log then grows until the partition is written again, which
// reports the damage.
#pragma once

#include <functional>
#include <vector>

#include "index/skimpy_stash/bucket_directory.h"
#include "index/skimpy_stash/chain_log.h"

namespace siltfs {

// Chains to write again. A chain's records follow each other, the oldest first.
struct ChainGroup {
  std::vector<ChainRecord> records;
  std::vector<uint32_t> orphans;  // the page of each old record
  uint64_t chains = 0;
  bool full = false;  // the next chain does not fit into the page
};

class ChainCollector {
 public:
  ChainCollector(const PageFiles& files, const SkimpyStashShape& shape)
      : files_(files), shape_(shape) {}

  // The log has pages that were not noted: Gather counts them.
  void Forget() { counted_ = false; }
  // A page with this many records was appended.
  void NoteAppended(uint32_t page, uint32_t records);
  // Gathers chains whose valid records fill a page, or fewer if there are none. The caller must
  // have a pin (PageFiles). Leaves out entries of segments for which `gone` is true, unless it is
  // empty.
  Result<ChainGroup> Gather(const ChainLog& log, const BucketDirectory& directory,
                            std::function<bool(SegmentId)> gone = {});
  // The group was written; its old records are orphans.
  void NoteCollected(const ChainGroup& group);
  // Whether no page of a file has records of chains.
  bool IsOrphaned(const ChainLog::LogFile& file) const;

  uint64_t memory_bytes() const { return live_.size() * sizeof(uint16_t); }
  uint64_t pages_read() const { return pages_read_; }

 private:
  struct Chain {
    std::vector<ChainRecord> records;  // newest first
    std::vector<uint32_t> pages;       // of each record
  };

  Status CountLive(const ChainLog& log, const BucketDirectory& directory);
  // Nothing if a page is damaged.
  Result<std::optional<Bytes>> ReadPage(const ChainLog& log, uint32_t page);
  Result<std::optional<Chain>> ReadChain(const ChainLog& log, const BucketDirectory& directory,
                                         uint32_t bucket);
  std::vector<ChainRecord> ValidRecords(const Chain& chain, const BucketDirectory& directory) const;
  Status GatherPage(const ChainLog& log, const BucketDirectory& directory, uint32_t page,
                    ChainGroup& group, std::vector<uint32_t>& done);

  const PageFiles& files_;
  const SkimpyStashShape shape_;
  bool counted_ = true;
  bool damaged_ = false;
  std::function<bool(SegmentId)> gone_;
  uint32_t first_ = 0;          // the page of live_[0]
  std::vector<uint16_t> live_;  // records of chains, by page
  uint64_t pages_read_ = 0;
};

}  // namespace siltfs
