#include "index/slice_bloom/slice_bloom_lookup.h"

#include <bit>
#include <utility>

namespace siltfs {

SliceBloomLookup::SliceBloomLookup(uint64_t hash, const BloomShape& shape) : hash_(hash) {
  shape.ForEachBit(hash, [&](uint32_t bit) {
    positions_[probes_++] = bit;
    return true;
  });
}

void SliceBloomLookup::Begin(const PageFiles& files, std::shared_ptr<const SliceFilters> filters,
                             const Moment& moment) {
  files_ = &files;
  moment_ = moment;
  filters_ = std::move(filters);
  left_ = filters_->size();
  if (left_ > 0) columns_ = Columns::First(filter().columns);
}

std::optional<PageRead> SliceBloomLookup::NextRead() {
  while (left_ > 0 && status_.ok()) {
    const bool exists = filter().first.value != 0;
    if (exists && !columns_.empty() && tested_ != (1U << probes_) - 1) {
      const auto probe = static_cast<unsigned>(std::countr_one(tested_));
      reading_page_ = filter().PageOf(positions_[probe]);
      const PageAddress page = filter().first + reading_page_;
      if (const auto place = files_->Resolve(page)) {
        reading_ = page;
        seed_ = place->seed;
        return PageRead{.file = place->file, .offset = place->offset};
      }
      // Only damage leads to a page that does not exist. It rules nothing out.
      ++damaged_pages_;
      tested_ |= 1U << probe;
      continue;
    }
    if (!exists) columns_ = Columns();
    EndFilter();
  }
  return std::nullopt;
}

void SliceBloomLookup::Take(const Status& status, ConstPageBytes bytes) {
  ++pages_read_;
  if (!status.ok()) {
    status_ = status;
    status_.IgnoreError("the caller checks it when the lookup has ended");
    return;
  }
  const bool whole =
      CheckFlashPage(bytes, reading_.page(), seed_) && PageKindOf(bytes) == kSliceBloomPage;
  if (!whole) ++damaged_pages_;
  for (unsigned probe = 0; probe < probes_; ++probe) {
    if (filter().PageOf(positions_[probe]) != reading_page_) continue;
    tested_ |= 1U << probe;
    if (whole) columns_.And(filter().Row(bytes, positions_[probe]));
  }
}

// Notes the groups of a slicefilter, and goes on with the one before.
void SliceBloomLookup::EndFilter() {
  --left_;
  for (uint32_t column = kMostColumns; column-- > 0 && !columns_.empty();) {
    if (columns_.Has(column)) found_.push_back({static_cast<uint32_t>(left_), column});
  }
  tested_ = 0;
  if (left_ > 0) columns_ = Columns::First(filter().columns);
}

}  // namespace siltfs
