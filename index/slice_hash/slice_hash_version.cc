#include "index/slice_hash/slice_hash_version.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {

// `step` counts the pages that were read or passed over: two for each slicetable, the newest first.

std::optional<PageAddress> SliceHashVersion::NextPage(LookupState& state) const {
  const auto buckets = shape_.Table().BucketsOf(state.hash);
  while (state.step < 2 * tables_.size()) {
    const SliceTable& table = tables_[tables_.size() - 1 - state.step / 2];
    const bool second = state.step++ % 2 == 1;
    if (!second) {
      if (table.filter == nullptr || table.filter->MayHave(state.hash)) {
        return table.PageOf(shape_, buckets[0]);
      }
      ++state.step;
      continue;
    }
    // The first page is searched for both buckets.
    const PageAddress page = table.PageOf(shape_, buckets[1]);
    if (page != table.PageOf(shape_, buckets[0])) return page;
  }
  return std::nullopt;
}

void SliceHashVersion::Take(LookupState& state, std::optional<ConstPageBytes> page) const {
  if (!page) return;
  const uint32_t step = state.step - 1;
  const SliceTable& table = tables_[tables_.size() - 1 - step / 2];
  const auto buckets = shape_.Table().BucketsOf(state.hash);
  if (step % 2 == 0) {
    state.found = table.Find(shape_, *page, buckets[0], state.hash);
    if (state.found || table.PageOf(shape_, buckets[0]) != table.PageOf(shape_, buckets[1])) return;
  }
  state.found = table.Find(shape_, *page, buckets[1], state.hash);
}

std::optional<uint32_t> SliceHashVersion::FirstPageOf(uint64_t hash) const {
  if (tables_.empty()) return std::nullopt;
  const SliceTable& table = tables_.back();
  const bool passes = table.filter == nullptr || table.filter->MayHave(hash);
  if (!passes && tables_.size() == 1) return std::nullopt;
  return shape_.PageOf(table.incarnations, shape_.Table().BucketsOf(hash)[0]);
}

Status SliceHashVersion::Collect(const Add& add, uint64_t& damaged_pages) const {
  for (size_t i = tables_.size(); i-- > 0;) {
    SILTFS_RETURN_IF_ERROR(tables_[i].Read(
        files_, shape_, [&](uint32_t, const FlashEntry& entry) { add(entry); }, damaged_pages));
  }
  return Status::Ok();
}

Status SliceHashVersion::Verify(const ReportFault& report) const {
  for (const SliceTable& table : tables_) SILTFS_RETURN_IF_ERROR(VerifyOne(table, report));
  return Status::Ok();
}

Status SliceHashVersion::VerifyOne(const SliceTable& table, const ReportFault& report) const {
  uint64_t damaged_pages = 0;
  bool misplaced = false;
  bool unfiltered = false;
  std::vector<uint64_t> hashes;
  SILTFS_RETURN_IF_ERROR(table.Read(
      files_, shape_,
      [&](uint32_t bucket, const FlashEntry& entry) {
        const auto buckets = shape_.Table().BucketsOf(entry.hash);
        misplaced = misplaced || (buckets[0] != bucket && buckets[1] != bucket);
        unfiltered = unfiltered || (table.filter != nullptr && !table.filter->MayHave(entry.hash));
        hashes.push_back(entry.hash);
      },
      damaged_pages));
  if (damaged_pages > 0) return Status::Ok();  // they are reported already
  if (misplaced) report("entry-place", "has an entry in the slice of a foreign bucket");
  if (unfiltered) report("filter", "has an entry that its filter rules out");
  if (hashes.size() != table.entries) {
    report("entry-count",
           fmt::format("has a slicetable with {} entries, not {}", hashes.size(), table.entries));
  }
  std::ranges::sort(hashes);
  if (std::ranges::adjacent_find(hashes) != hashes.end()) {
    report("entry-twice", "has two entries of a hash in a slicetable");
  }
  return Status::Ok();
}

uint64_t SliceHashVersion::filter_bytes() const {
  uint64_t bytes = 0;
  for (const SliceTable& table : tables_) {
    if (table.filter != nullptr) bytes += table.filter->memory_bytes();
  }
  return bytes;
}

}  // namespace siltfs
