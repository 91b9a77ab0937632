#include "index/skimpy_stash/skimpy_stash_version.h"

#include <fmt/format.h>

#include "index/skimpy_stash/chain_sweep.h"

namespace siltfs {

// In a LookupState, `words` are the pointers to the chains of the two buckets, 0 for a chain that
// need not be searched; `part` is the number of chains that were begun; `step` is the pointer to
// follow next in the last of these.

void SkimpyStashVersion::Begin(LookupState& state, const BucketDirectory& directory) const {
  const auto buckets = shape_.BucketsOf(state.hash);
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (i == 1 && buckets[0] == buckets[1]) break;
    if (directory.MayHave(buckets[i], state.hash)) state.words[i] = directory.head(buckets[i]);
  }
}

std::optional<PageAddress> SkimpyStashVersion::NextPage(LookupState& state) const {
  while (state.step == 0) {
    if (state.part == state.words.size()) return std::nullopt;
    state.step = static_cast<uint32_t>(state.words[state.part++]);
  }
  // A page that the log does not have counts as damaged: its address resolves to nothing.
  return log_.AddressOf(state.step - 1).value_or(PageAddress());
}

void SkimpyStashVersion::Take(LookupState& state, std::optional<ConstPageBytes> page) const {
  const uint32_t here = state.step;
  state.step = 0;  // the chain ends here, unless the page says otherwise
  if (!page) return;
  const uint32_t bucket = shape_.BucketsOf(state.hash)[state.part - 1];
  for (size_t i = ChainRecordsIn(shape_.layout, *page); i-- > 0;) {
    const ChainRecord record = ReadChainRecord(shape_.layout, *page, i);
    if (record.BucketIn(shape_) != bucket) continue;
    if (record.entry.hash == state.hash) {
      state.found = record.entry;
      return;
    }
    if (record.pointer == here) continue;
    // Pointers fall, so that no chain is endless.
    if (record.pointer < here) state.step = record.pointer;
    return;
  }
}

Status SkimpyStashVersion::Collect(const Add& add, uint64_t& damaged_pages) const {
  // Entries of first buckets win (chain_record.h), so the others come last.
  std::vector<FlashEntry> in_second;
  SILTFS_ASSIGN_OR_RETURN(
      const SweepResult swept,
      SweepChains(files_, log_, shape_, *directory_, [&](const ChainRecord& record, uint32_t) {
        if (record.second) {
          in_second.push_back(record.entry);
        } else {
          add(record.entry);
        }
      }));
  for (const FlashEntry& entry : in_second) add(entry);
  damaged_pages += swept.damaged_pages;
  return Status::Ok();
}

Status SkimpyStashVersion::Verify(const ReportFault& report) const {
  uint64_t unfiltered = 0;
  uint64_t rising = 0;
  SILTFS_ASSIGN_OR_RETURN(
      const SweepResult swept,
      SweepChains(files_, log_, shape_, *directory_, [&](const ChainRecord& record, uint32_t page) {
        if (!directory_->MayHave(record.BucketIn(shape_), record.entry.hash)) ++unfiltered;
        if (record.pointer > page + 1) ++rising;
      }));
  if (unfiltered > 0) report("filter", "has an entry that its filter rules out");
  if (rising > 0) report("chain-order", "has a chain that leads to a newer page");
  if (swept.damaged_pages > 0) return Status::Ok();  // reported already; chains are broken there
  if (swept.broken_chains > 0) {
    report("chain", fmt::format("has {} chains that do not end", swept.broken_chains));
  }
  // Recovery must get the same directory.
  BucketDirectory recovered(shape_);
  recovered.MakeHeads();
  SILTFS_ASSIGN_OR_RETURN(const bool whole,
                          ReplayChains(files_, log_, shape_, log_.first_page(), recovered));
  for (uint32_t bucket = 0; whole && bucket < shape_.buckets(); ++bucket) {
    if (recovered.head(bucket) == directory_->head(bucket)) continue;
    report("directory", fmt::format("has a wrong pointer to the chain of bucket {}", bucket));
    break;
  }
  return Status::Ok();
}

}  // namespace siltfs
