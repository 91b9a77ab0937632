#include "index/bloom_store/bloom_store_partition.h"

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs {
namespace {

void ReleaseChain(PageFiles& files, const FilterChain& chain) {
  if (chain.columns > 0) files.Release(chain.first, chain.pages);
}

}  // namespace

BloomStorePartition::BloomStorePartition(FlashContext& context, uint64_t id,
                                         const HashPrefix& prefix, const BloomStoreShape& shape)
    : BufferedPartition(context, id, prefix, PageBuffer(shape.layout, shape.filter),
                        std::make_shared<BloomStoreVersion>(context, shape, BloomStoreState())),
      shape_(shape) {}

// --- The manifest ---

std::string BloomStorePartition::Encode() const {
  const BloomStoreState state = version()->state();
  Encoder out;
  out.U64(state.chain.first.value).U32(state.chain.pages).U32(state.chain.columns);
  out.U64(state.chain.entries).U32(static_cast<uint32_t>(state.chain.data_pages.size()));
  for (const FilterChain::PagesInFile& in_file : state.chain.data_pages) {
    out.U64(in_file.file).U32(in_file.pages);
  }
  for (const DataPage& recent : state.recent) out.U64(recent.page.value).U32(recent.entries);
  return out.Take();
}

Result<std::unique_ptr<FlashPartition>> BloomStorePartition::Open(FlashContext& context,
                                                                  uint64_t id,
                                                                  const HashPrefix& prefix,
                                                                  const BloomStoreShape& shape,
                                                                  ByteView bytes) {
  const size_t per_page = shape.layout.per_page();
  Decoder in(bytes);
  BloomStoreState state;
  FilterChain& chain = state.chain;
  chain.first.value = in.U64();
  chain.pages = in.U32();
  chain.columns = in.U32();
  chain.entries = in.U64();
  uint64_t columns = 0;
  for (uint32_t left = in.U32(); left > 0 && in.ok(); --left) {
    const uint64_t file = in.U64();
    chain.data_pages.push_back({.file = file, .pages = in.U32()});
    columns += chain.data_pages.back().pages;
  }
  bool valid = in.ok() && columns == chain.columns && columns <= shape.chain_length &&
               chain.entries <= columns * per_page;
  if (columns > 0) {
    valid = valid && (chain.pages == shape.filter.blocks ||
                      chain.pages == shape.filter.blocks + shape.prefilter_pages());
  } else {
    valid = valid && chain.first.value == 0 && chain.pages == 0;
  }
  while (valid && in.remaining() > 0) {
    DataPage recent;
    recent.page.value = in.U64();
    recent.entries = in.U32();
    valid = in.ok() && recent.entries > 0 && recent.entries <= per_page;
    state.recent.push_back(std::move(recent));
  }
  if (!valid) return Status(StatusCode::kCorruption, "describes a chain of filters wrongly");
  auto partition = std::make_unique<BloomStorePartition>(context, id, prefix, shape);
  partition->filters_dropped_ = !state.recent.empty() || shape.has_prefilter;
  partition->InstallState(std::move(state), /*buffer_is_written=*/false);
  return std::unique_ptr<FlashPartition>(std::move(partition));
}

// --- Reading ---

void BloomStorePartition::AddStats(std::vector<IndexComponentStats>& stats) const {
  const BloomStoreState state = version()->state();
  const uint64_t buffered = buffered_entries();
  stats.push_back(
      {.kind = "buffer",
       .entries = buffered,
       .memory_bytes = buffered == 0 ? 0 : PageBuffer::MemoryFor(shape_.filter),
       .occupancy = static_cast<double>(buffered) / static_cast<double>(shape_.layout.per_page())});
  const uint64_t in_chain = state.chain.entries;
  stats.push_back({.kind = "recent_pages",
                   .id = state.recent.size(),
                   .entries = state.entries() - in_chain,
                   .flash_bytes = state.recent.size() * kPageSize,
                   .memory_bytes = state.recent_bytes(),
                   .filter_memory_bytes = state.recent_bytes()});
  const uint64_t others = state.filter_bytes() - state.recent_bytes();
  stats.push_back({.kind = "chain",
                   .id = state.chain.columns,
                   .entries = in_chain,
                   .flash_bytes = (uint64_t{state.chain.columns} + state.chain.pages) * kPageSize,
                   .memory_bytes = others,
                   .filter_memory_bytes = others});
}

// --- Writing ---

void BloomStorePartition::InstallState(BloomStoreState state, bool buffer_is_written) {
  Install(std::make_shared<BloomStoreVersion>(context(), shape_, std::move(state)),
          buffer_is_written);
}

bool BloomStorePartition::WantsRewrite() const {
  return chain_is_lost_ ||
         version()->state().filters() + shape_.layout.PagesFor(buffered_entries()) >
             shape_.chain_length;
}

Status BloomStorePartition::WriteBuffer() {
  return Append(TakeSnapshot().buffered, /*buffer_is_written=*/true);
}

Status BloomStorePartition::Fill(std::span<const FlashEntry> entries) {
  return Append(entries, /*buffer_is_written=*/false);
}

Status BloomStorePartition::Append(std::span<const FlashEntry> entries, bool buffer_is_written) {
  if (entries.empty()) return Status::Ok();
  const PageFiles::FilePin pin = files().Pin();
  BloomStoreState state = version()->state();
  const PageFiles::Mark mark = files().MarkEnds();
  SILTFS_ASSIGN_OR_RETURN(const std::vector<DataPage> made,
                          WriteDataPages(files(), shape_, entries));
  const bool first = state.filters() == 0;
  state.recent.insert(state.recent.end(), made.begin(), made.end());
  if (shape_.has_prefilter && !filters_dropped_ && (first || state.prefilter != nullptr)) {
    auto prefilter = first ? std::make_shared<BloomFilter>(shape_.prefilter)
                           : std::make_shared<BloomFilter>(*state.prefilter);
    for (const FlashEntry& entry : entries) prefilter->Add(entry.hash);
    state.prefilter = std::move(prefilter);
  }
  const FilterChain old = state.chain;
  if (filters_dropped_ || state.recent.size() >= shape_.buffered_filters) {
    Status moved = MoveToChain(state);
    if (!moved.ok()) {
      files().Release(made.front().page, static_cast<uint32_t>(made.size()));
      files().CutBack(mark);
      return moved;
    }
  }
  const bool replaced = state.chain.first != old.first;
  InstallState(std::move(state), buffer_is_written);
  if (replaced) ReleaseChain(files(), old);
  return Status::Ok();
}

Status BloomStorePartition::MoveToChain(BloomStoreState& state) {
  const FilterChain& old = state.chain;
  auto rows = std::make_shared<ChainRows>();
  if (old.rows != nullptr) {
    *rows = *old.rows;
  } else if (old.columns > 0) {
    SILTFS_ASSIGN_OR_RETURN(auto read, ReadWholeChain(files(), shape_, old));
    chain_is_lost_ = !read;
    // FlashIndex rewrites the partition next, and counts what is lost.
    if (chain_is_lost_) return Status::Ok();
    if (read->damaged) CountDamage(old);
    *rows = std::move(read->rows);
  }
  const size_t count =
      std::min<size_t>(state.recent.size(), shape_.chain_length - rows->pages.size());
  const std::span<DataPage> moving = std::span(state.recent).first(count);
  // A prefilter in memory has the entries of the recent pages already.
  std::optional<BloomFilter> prefilter;
  if (shape_.has_prefilter && state.prefilter == nullptr) {
    SILTFS_ASSIGN_OR_RETURN(prefilter, PrefilterOf(old));
  }
  SILTFS_RETURN_IF_ERROR(MakeFilters(moving, prefilter));
  uint64_t entries = old.entries;
  for (const DataPage& page : moving) {
    rows->Append(shape_, page.page, *page.filter);
    entries += page.entries;
  }
  const BloomFilter* const written = prefilter ? &*prefilter : state.prefilter.get();
  const bool in_memory = !filters_dropped_ && (old.columns == 0 || old.rows != nullptr);
  SILTFS_ASSIGN_OR_RETURN(auto chain,
                          WriteChain(files(), shape_, std::move(rows), entries, written));
  if (!in_memory) chain.rows.reset();
  state.chain = std::move(chain);
  state.recent.erase(state.recent.begin(), state.recent.begin() + static_cast<ptrdiff_t>(count));
  if (filters_dropped_) {
    for (DataPage& page : state.recent) page.filter.reset();
  }
  return Status::Ok();
}

// A lookup reads each recent page whose filter is not in memory, so the chain gets these filters.
Result<bool> BloomStorePartition::WriteDroppedFilters() {
  if (!filters_dropped_ || chain_is_lost_ || version()->state().recent.empty()) return false;
  return ReplaceChain();
}

Result<bool> BloomStorePartition::MoveOut(uint64_t file) {
  const FilterChain chain = version()->state().chain;
  if (chain.columns == 0 || chain.first.file() != file || chain_is_lost_) return false;
  return ReplaceChain();
}

// Writes the chain again, with the filters of the recent pages. False if it is damaged.
Result<bool> BloomStorePartition::ReplaceChain() {
  const PageFiles::FilePin pin = files().Pin();
  BloomStoreState state = version()->state();
  const FilterChain old = state.chain;
  SILTFS_RETURN_IF_ERROR(MoveToChain(state));
  if (state.chain.first == old.first) return false;
  InstallState(std::move(state), /*buffer_is_written=*/false);
  ReleaseChain(files(), old);
  return true;
}

void BloomStorePartition::ForEachFile(const VisitFile& visit) const {
  const auto version = this->version();
  const BloomStoreState& state = version->state();
  if (state.chain.columns > 0) visit(state.chain.first.file(), state.chain.pages);
  for (const FilterChain::PagesInFile& in_file : state.chain.data_pages) {
    visit(in_file.file, in_file.pages);
  }
  for (const DataPage& recent : state.recent) visit(recent.page.file(), 1);
}

void BloomStorePartition::ReleaseAll() {
  const BloomStoreState state = version()->state();
  ReleaseChain(files(), state.chain);
  for (const FilterChain::PagesInFile& in_file : state.chain.data_pages) {
    files().Release(PageAddress::Of(in_file.file, 0), in_file.pages);
  }
  for (const DataPage& recent : state.recent) files().Release(recent.page, 1);
}

}  // namespace siltfs
