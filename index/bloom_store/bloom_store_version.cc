#include "index/bloom_store/bloom_store_version.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {
namespace {

// LookupState::step. Before the chain, LookupState::part is the number of recent pages that were
// passed, the newest first; then it is the number of chain pages that were damaged.
enum Step : uint32_t { kRecent, kChain, kCandidates };

}  // namespace

// --- The state ---

uint64_t BloomStoreState::entries() const {
  uint64_t entries = chain.entries;
  for (const DataPage& page : recent) entries += page.entries;
  return entries;
}

uint64_t BloomStoreState::recent_bytes() const {
  uint64_t bytes = 0;
  for (const DataPage& page : recent) {
    if (page.filter != nullptr) bytes += page.filter->memory_bytes();
  }
  return bytes;
}

uint64_t BloomStoreState::filter_bytes() const {
  return recent_bytes() + (prefilter == nullptr ? 0 : prefilter->memory_bytes()) +
         (chain.rows == nullptr ? 0 : chain.rows->memory_bytes());
}

// --- Lookups ---

std::optional<PageAddress> BloomStoreVersion::NextPage(LookupState& lookup) const {
  if (lookup.step == kRecent) {
    if (lookup.part == 0 && state_.prefilter != nullptr &&
        !state_.prefilter->MayHave(lookup.hash)) {
      return std::nullopt;
    }
    while (lookup.part < state_.recent.size()) {
      const DataPage& recent = state_.recent[state_.recent.size() - ++lookup.part];
      if (recent.filter == nullptr || recent.filter->MayHave(lookup.hash)) return recent.page;
    }
    lookup.part = 0;
    lookup.step = kChain;
  }
  if (lookup.step == kChain) {
    if (const auto page = NextOfChain(lookup)) return page;
  }
  if (lookup.pages.empty()) return std::nullopt;
  const PageAddress next = lookup.pages.back();
  lookup.pages.pop_back();
  return next;
}

// The chain page to read; nothing if the candidates are known, or none are left.
std::optional<PageAddress> BloomStoreVersion::NextOfChain(LookupState& lookup) const {
  const FilterChain& chain = state_.chain;
  const uint32_t blocks = shape_.filter.blocks;
  if (chain.columns > 0 && chain.rows == nullptr && lookup.part < blocks) {
    // Each chain page has the addresses, so only the last one that is damaged loses entries.
    lookup.page_is_spare = lookup.part + 1 < blocks;
    return chain.first + (shape_.filter.BlockOf(lookup.hash) + lookup.part) % blocks;
  }
  lookup.step = kCandidates;
  if (chain.rows == nullptr) return std::nullopt;
  const ColumnSet columns = chain.rows->Match(shape_, lookup.hash);
  for (size_t column = 0; !columns.empty() && column < chain.columns; ++column) {
    if (columns.Has(column)) lookup.pages.push_back(chain.rows->pages[column]);
  }
  return std::nullopt;
}

void BloomStoreVersion::Take(LookupState& lookup, std::optional<ConstPageBytes> page) const {
  if (lookup.step == kChain) {
    TakeChainPage(lookup, page);
  } else if (page && PageKindOf(*page) == BloomStoreShape::kDataPage) {
    lookup.found = shape_.layout.FindLast(*page, PageCountOf(*page), lookup.hash);
  }
}

void BloomStoreVersion::TakeChainPage(LookupState& lookup,
                                      std::optional<ConstPageBytes> page) const {
  const FilterChain& chain = state_.chain;
  if (!page || !IsChainPage(*page, chain.columns)) {
    ++lookup.part;
    if (!chain.damage_counted->exchange(true)) ++context_.damaged_filters;
    return;
  }
  // The filters of another block say nothing about the hash.
  const ColumnSet columns = lookup.part == 0 ? MatchChainPage(shape_, *page, lookup.hash)
                                             : ColumnSet::FirstColumns(chain.columns);
  for (size_t column = 0; !columns.empty() && column < chain.columns; ++column) {
    if (columns.Has(column)) {
      lookup.pages.push_back(AddressInChainPage(shape_, *page, column));
    }
  }
  lookup.step = kCandidates;
}

// --- Listing ---

Result<std::vector<PageAddress>> BloomStoreVersion::AllDataPages(uint64_t& damaged_pages) const {
  SILTFS_ASSIGN_OR_RETURN(auto pages, ReadAddresses(context_.files, shape_, state_.chain));
  if (!pages) ++damaged_pages;
  std::vector<PageAddress> all = pages ? std::move(*pages) : std::vector<PageAddress>();
  for (const DataPage& recent : state_.recent) all.push_back(recent.page);
  return all;
}

Status BloomStoreVersion::Collect(const Add& add, uint64_t& damaged_pages) const {
  SILTFS_ASSIGN_OR_RETURN(const auto pages, AllDataPages(damaged_pages));
  // Pages are read in the order in which they were written, because this is faster.
  std::vector<FlashEntry> entries;
  SILTFS_RETURN_IF_ERROR(
      ReadDataPages(context_.files, pages, [&](uint32_t, std::optional<ConstPageBytes> page) {
        if (!page) ++damaged_pages;
        for (size_t i = 0; page && i < RecordsOf(shape_, *page); ++i) {
          entries.push_back(shape_.layout.Read(*page, i));
        }
        return Status::Ok();
      }));
  for (size_t i = entries.size(); i-- > 0;) add(entries[i]);
  return Status::Ok();
}

Status BloomStoreVersion::Verify(const ReportFault& report) const {
  const FilterChain& chain = state_.chain;
  std::optional<ReadChain> read;
  if (chain.columns > 0) {
    SILTFS_ASSIGN_OR_RETURN(read, ReadWholeChain(context_.files, shape_, chain));
    if (!read) return Status::Ok();  // the damaged pages are reported already
  }
  uint64_t damaged_pages = 0;
  SILTFS_ASSIGN_OR_RETURN(const auto pages, AllDataPages(damaged_pages));
  uint64_t entries = 0;
  bool whole = true;
  bool unfiltered = false;
  bool ruled_out = false;
  SILTFS_RETURN_IF_ERROR(
      ReadDataPages(context_.files, pages, [&](uint32_t i, std::optional<ConstPageBytes> page) {
        whole = whole && page && PageCountOf(*page) <= shape_.layout.per_page();
        for (size_t at = 0; whole && at < PageCountOf(*page); ++at, ++entries) {
          const uint64_t hash = shape_.layout.HashAt(*page, at);
          ruled_out = ruled_out || (state_.prefilter && !state_.prefilter->MayHave(hash));
          if (i < chain.columns) {
            unfiltered = unfiltered || !read->rows.Match(shape_, hash).Has(i) ||
                         (chain.rows != nullptr && !chain.rows->Match(shape_, hash).Has(i));
          } else {
            const auto& filter = state_.recent[i - chain.columns].filter;
            unfiltered = unfiltered || (filter != nullptr && !filter->MayHave(hash));
          }
        }
        return Status::Ok();
      }));
  if (unfiltered) report("filter", "has an entry that the filter of its page rules out");
  if (ruled_out) report("prefilter", "has an entry that the prefilter rules out");
  if (whole && entries != state_.entries()) {
    report("entry-count",
           fmt::format("has {} entries on flash, not {}", entries, state_.entries()));
  }
  return Status::Ok();
}

}  // namespace siltfs
