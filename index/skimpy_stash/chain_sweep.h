// Passes over the log of a SkimpyStash partition in the order of its pages, instead of following
// one chain after the other: for listings, verification, recovery, and the counts of live records.
//
// Functions only, safe to call from any thread; the caller must have a pin (PageFiles). Memory: 64
// pages, and 4 bytes for each bucket (SweepChains). Errors: kIoError.
#pragma once

#include <functional>

#include "index/skimpy_stash/bucket_directory.h"
#include "index/skimpy_stash/chain_log.h"

namespace siltfs {

struct SweepResult {
  uint64_t damaged_pages = 0;
  uint64_t broken_chains = 0;  // that lead to a page without a record of their bucket
};

// Visits all records that belong to chains, from the log's tail to its head; of each chain, the
// newest record first. The part of a chain behind a damaged page is not visited.
using VisitRecord = std::function<void(const ChainRecord& record, uint32_t page)>;
Result<SweepResult> SweepChains(const PageFiles& files, const ChainLog& log,
                                const SkimpyStashShape& shape, const BucketDirectory& directory,
                                const VisitRecord& visit);

// Applies all records from page `from` on to the directory ("SkimpyStash", section 4.7). Returns
// false if a page is damaged; the directory is unusable then.
Result<bool> ReplayChains(const PageFiles& files, const ChainLog& log,
                          const SkimpyStashShape& shape, uint32_t from, BucketDirectory& directory);

}  // namespace siltfs
