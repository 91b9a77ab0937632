#include "index/slice_hash/slice_hash_partition.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/base/coding.h"

namespace siltfs {

SliceHashPartition::SliceHashPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix,
                                       const SliceHashOptions& options)
    : BufferedPartition(
          context, id, prefix, EntryTable(options.shape.Table()),
          std::make_shared<SliceHashVersion>(context, options.shape, std::vector<SliceTable>())),
      options_(options),
      shape_(options_.shape) {}

Result<std::unique_ptr<FlashPartition>> SliceHashPartition::Open(FlashContext& context, uint64_t id,
                                                                 const HashPrefix& prefix,
                                                                 const SliceHashOptions& options,
                                                                 ByteView state) {
  const SliceShape& shape = options.shape;
  Decoder in(state);
  std::vector<SliceTable> tables;
  while (in.ok() && in.remaining() > 0) {
    SliceTable table;
    table.first.value = in.U64();
    table.incarnations = in.U32();
    table.entries = in.U64();
    const bool valid = in.ok() && table.incarnations > 0 &&
                       table.incarnations <= shape.most_incarnations && table.entries > 0 &&
                       table.entries <= shape.MostEntries(table.incarnations) &&
                       tables.size() < options.tables();
    if (!valid) return Status(StatusCode::kCorruption, "describes a slicetable wrongly");
    tables.push_back(std::move(table));
  }
  auto partition = std::make_unique<SliceHashPartition>(context, id, prefix, options);
  partition->InstallAll(std::move(tables), /*buffer_is_written=*/false);
  return std::unique_ptr<FlashPartition>(std::move(partition));
}

std::string SliceHashPartition::Encode() const {
  Encoder out;
  for (const SliceTable& table : version()->tables()) {
    out.U64(table.first.value).U32(table.incarnations).U64(table.entries);
  }
  return out.Take();
}

void SliceHashPartition::InstallAll(std::vector<SliceTable> tables, bool buffer_is_written) {
  Install(std::make_shared<SliceHashVersion>(context(), shape_, std::move(tables)),
          buffer_is_written);
}

void SliceHashPartition::Release(const SliceTable& table) {
  files().Release(table.first, table.AllPages(shape_));
}

// --- Reading ---

std::shared_ptr<const FlashVersion> SliceHashPartition::Begin(LookupState& state) const {
  auto version = BufferedPartition::Begin(state);
  if (version != nullptr && shape_.filter_bits != 0) {
    lookups.fetch_add(1, std::memory_order_relaxed);
  }
  return version;
}

// With write-order mapping, a device puts the i-th chunk of what is written into channel i modulo
// the number of channels (section 5.2 of the paper).
uint32_t SliceHashPartition::ChannelOf(uint64_t hash) const {
  ReaderLock lock(mutex_);
  const auto page = version_->FirstPageOf(hash);
  if (!page) return kNoChannel;
  const uint32_t channel = *page / options_.chunk_pages % options_.channels;
  return DirectoryOf(version_->tables().size() - 1) * options_.channels + channel;
}

void SliceHashPartition::AddStats(std::vector<IndexComponentStats>& stats) const {
  const auto version = this->version();
  const auto places = static_cast<double>(shape_.Table().places());
  const uint64_t buffered = buffered_entries();
  stats.push_back({.kind = "buffer",
                   .entries = buffered,
                   .memory_bytes = buffered == 0 ? 0 : EntryTable::MemoryFor(shape_.Table()),
                   .occupancy = static_cast<double>(buffered) / places});
  for (const SliceTable& table : version->tables()) {
    const uint64_t filter_bytes = table.filter == nullptr ? 0 : table.filter->memory_bytes();
    stats.push_back(
        {.kind = "slicetable",
         .id = table.first.file(),
         .entries = table.entries,
         .flash_bytes = uint64_t{table.AllPages(shape_)} * kPageSize,
         .memory_bytes = filter_bytes,
         .filter_memory_bytes = filter_bytes,
         .occupancy = static_cast<double>(table.entries) / (places * table.incarnations)});
  }
}

// --- Writing ---

bool SliceHashPartition::WantsRewrite() const {
  ReaderLock lock(mutex_);
  // Entries without a place in the buffer may have none in one more incarnation either.
  if (!buffer_.overflow().empty()) return true;
  const std::vector<SliceTable>& tables = version_->tables();
  return tables.size() == options_.tables() &&
         tables.back().incarnations == shape_.most_incarnations;
}

// Only the newest slicetable is written again. The older ones of a partition with several have all
// their incarnations.
Status SliceHashPartition::WriteBuffer() {
  const EntryTable buffer = CopyOfBuffer();
  if (buffer.size() == 0) return Status::Ok();
  std::vector<SliceTable> tables = version()->tables();
  std::optional<SliceTable> old;
  if (!tables.empty() && tables.back().incarnations < shape_.most_incarnations) {
    old = std::move(tables.back());
    tables.pop_back();
  }
  SlicePlacement placement(shape_.buckets);
  buffer.ForEach([&](const FlashEntry& entry) {
    // Without older slicetables there is nothing for a tombstone to hide.
    if (!entry.tombstone() || !tables.empty()) placement.Add(entry);
  });
  uint32_t incarnations = 1;
  if (old) {
    const PageFiles::FilePin pin = files().Pin();
    uint64_t damaged_pages = 0;
    const auto gone = context().gone();
    const auto keep = [&](uint32_t, const FlashEntry& entry) {
      if (buffer.Find(entry.hash)) return;
      // An entry may hide one of an older slicetable.
      if (tables.empty() && gone && gone(entry.location.segment)) return;
      placement.Add(entry);
    };
    SILTFS_RETURN_IF_ERROR(old->Read(files(), shape_, keep, damaged_pages));
    context().damaged_pages += damaged_pages;
    // The old entries have a placement with the old number, and the buffer is one more.
    incarnations += old->incarnations;
  }
  if (!placement.entries().empty()) {
    SILTFS_ASSIGN_OR_RETURN(SliceTable made, Write(tables.size(), placement, incarnations));
    tables.push_back(std::move(made));
  }
  InstallAll(std::move(tables), /*buffer_is_written=*/true);
  if (old) Release(*old);
  return Status::Ok();
}

Result<SliceTable> SliceHashPartition::Write(size_t table, SlicePlacement& placement,
                                             uint32_t most_incarnations) {
  MemoryShare share(context().buffer_bytes);
  share.Set(placement.memory_bytes() + uint64_t{shape_.Pages(most_incarnations)} * kPageSize);
  return WriteSliceTable(files(), LogOf(table), shape_, placement, most_incarnations);
}

Status SliceHashPartition::Fill(std::span<const FlashEntry> entries) {
  // Slicetables before the last one are never written again, so they are filled well. Each entry
  // still finds a place easily.
  const size_t usual = std::max<size_t>(shape_.Capacity() * 7 / 8, 1);
  std::vector<SliceTable> tables;
  Status status;
  while (!entries.empty() && status.ok()) {
    const bool last = tables.size() + 1 == options_.tables();
    const auto here = entries.first(last ? entries.size() : std::min(entries.size(), usual));
    entries = entries.subspan(here.size());
    SlicePlacement placement(shape_.buckets);
    for (const FlashEntry& entry : here) placement.Add(entry);
    auto made = Write(tables.size(), placement, shape_.most_incarnations);
    if (made.ok()) {
      tables.push_back(std::move(*made));
    } else {
      status = std::move(made).status();
    }
  }
  if (!status.ok()) {
    for (const SliceTable& table : tables) Release(table);
    return status;
  }
  InstallAll(std::move(tables), /*buffer_is_written=*/false);
  return Status::Ok();
}

void SliceHashPartition::ForEachFile(const VisitFile& visit) const {
  const auto version = this->version();
  for (const SliceTable& table : version->tables()) {
    visit(table.first.file(), table.AllPages(shape_));
  }
}

void SliceHashPartition::ReleaseAll() {
  for (const SliceTable& table : version()->tables()) Release(table);
}

// --- Filters ---

void SliceHashPartition::DropFilters() {
  if (filter_share_.bytes() == 0) return;
  std::vector<SliceTable> tables = version()->tables();
  for (SliceTable& table : tables) table.filter.reset();
  InstallAll(std::move(tables), /*buffer_is_written=*/false);
}

uint64_t SliceHashPartition::DroppedFilterBytes() const {
  uint64_t bytes = 0;
  if (shape_.filter_bits == 0) return bytes;
  for (const SliceTable& table : version()->tables()) {
    if (table.filter != nullptr || table.filter_is_damaged) continue;
    bytes += table.FilterShape(shape_).bytes();
  }
  return bytes;
}

Status SliceHashPartition::LoadFilters() {
  const PageFiles::FilePin pin = files().Pin();
  std::vector<SliceTable> tables = version()->tables();
  for (SliceTable& table : tables) {
    const bool was_damaged = table.filter_is_damaged;
    SILTFS_RETURN_IF_ERROR(table.LoadFilter(files(), shape_));
    if (table.filter_is_damaged && !was_damaged) ++context().damaged_filters;
  }
  InstallAll(std::move(tables), /*buffer_is_written=*/false);
  return Status::Ok();
}

}  // namespace siltfs
