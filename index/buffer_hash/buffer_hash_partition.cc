#include "index/buffer_hash/buffer_hash_partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kLog = 0;

}  // namespace

// --- The version ---

std::optional<PageAddress> BufferHashVersion::NextPage(LookupState& state) const {
  // `step` is the number of incarnations that were passed, the newest first.
  while (state.step < incarnations_.size()) {
    const Incarnation& incarnation = incarnations_[incarnations_.size() - ++state.step];
    if (incarnation.filter != nullptr && !incarnation.filter->MayHave(state.hash)) continue;
    return incarnation.first + incarnation.PageOf(prefix_, state.hash);
  }
  return std::nullopt;
}

void BufferHashVersion::Take(LookupState& state, std::optional<ConstPageBytes> page) const {
  if (page) state.found = shape_.format.layout.FindLast(*page, PageCountOf(*page), state.hash);
}

Status BufferHashVersion::Collect(const Add& add, uint64_t& damaged_pages) const {
  const RecordLayout& layout = shape_.format.layout;
  for (size_t i = incarnations_.size(); i-- > 0;) {
    const Incarnation& incarnation = incarnations_[i];
    SILTFS_RETURN_IF_ERROR(files_.Read(
        incarnation.first, incarnation.pages, [&](uint32_t, std::optional<ConstPageBytes> page) {
          if (!page || PageKindOf(*page) != IncarnationFormat::kRecordPage) {
            ++damaged_pages;
            return Status::Ok();
          }
          const size_t count = std::min<size_t>(PageCountOf(*page), layout.per_page());
          for (size_t at = 0; at < count; ++at) add(layout.Read(*page, at));
          return Status::Ok();
        }));
  }
  return Status::Ok();
}

Status BufferHashVersion::Verify(const ReportFault& report) const {
  for (const Incarnation& incarnation : incarnations_) {
    SILTFS_RETURN_IF_ERROR(VerifyOne(incarnation, report));
  }
  return Status::Ok();
}

Status BufferHashVersion::VerifyOne(const Incarnation& incarnation,
                                    const ReportFault& report) const {
  const RecordLayout& layout = shape_.format.layout;
  uint64_t entries = 0;
  bool whole = true;
  bool misplaced = false;
  bool unfiltered = false;
  SILTFS_RETURN_IF_ERROR(files_.Read(
      incarnation.first, incarnation.pages, [&](uint32_t i, std::optional<ConstPageBytes> page) {
        whole = whole && page && PageCountOf(*page) <= layout.per_page();
        if (!whole) return Status::Ok();
        for (size_t at = 0; at < PageCountOf(*page); ++at, ++entries) {
          const uint64_t hash = layout.HashAt(*page, at);
          misplaced = misplaced || incarnation.PageOf(prefix_, hash) != i;
          unfiltered =
              unfiltered || (incarnation.filter != nullptr && !incarnation.filter->MayHave(hash));
        }
        return Status::Ok();
      }));
  if (!whole) return Status::Ok();  // the damaged page is reported already
  if (misplaced) report("entry-place", "has an entry in the wrong page of an incarnation");
  if (unfiltered) report("filter", "has an entry that its filter rules out");
  if (entries != incarnation.entries) {
    report("entry-count",
           fmt::format("has an incarnation with {} entries, not {}", entries, incarnation.entries));
  }
  return Status::Ok();
}

uint64_t BufferHashVersion::entries() const {
  uint64_t entries = 0;
  for (const Incarnation& incarnation : incarnations_) entries += incarnation.entries;
  return entries;
}

uint64_t BufferHashVersion::pages() const {
  uint64_t pages = 0;
  for (const Incarnation& incarnation : incarnations_) pages += shape_.format.AllPages(incarnation);
  return pages;
}

uint64_t BufferHashVersion::filter_bytes() const {
  uint64_t bytes = 0;
  for (const Incarnation& incarnation : incarnations_) {
    if (incarnation.filter != nullptr) bytes += incarnation.filter->memory_bytes();
  }
  return bytes;
}

// --- The partition ---

BufferHashPartition::BufferHashPartition(FlashContext& context, uint64_t id,
                                         const HashPrefix& prefix, const BufferHashShape& shape)
    : BufferedPartition(
          context, id, prefix, EntryTable(shape.table),
          std::make_shared<BufferHashVersion>(context, shape, prefix, std::vector<Incarnation>())),
      shape_(shape) {}

Result<std::unique_ptr<FlashPartition>> BufferHashPartition::Open(FlashContext& context,
                                                                  uint64_t id,
                                                                  const HashPrefix& prefix,
                                                                  const BufferHashShape& shape,
                                                                  ByteView state) {
  Decoder in(state);
  std::vector<Incarnation> incarnations;
  while (in.ok() && in.remaining() > 0) {
    Incarnation incarnation;
    incarnation.first.value = in.U64();
    incarnation.pages = in.U32();
    incarnation.entries = in.U64();
    const bool valid =
        in.ok() && incarnation.pages > 0 && incarnation.pages <= PageAddress::kMostPages &&
        incarnation.entries <= uint64_t{incarnation.pages} * shape.format.layout.per_page() &&
        incarnations.size() < shape.incarnations;
    if (!valid) return Status(StatusCode::kCorruption, "describes an incarnation wrongly");
    incarnations.push_back(std::move(incarnation));
  }
  auto partition = std::make_unique<BufferHashPartition>(context, id, prefix, shape);
  partition->InstallAll(std::move(incarnations), /*buffer_is_written=*/false);
  return std::unique_ptr<FlashPartition>(std::move(partition));
}

std::string BufferHashPartition::Encode() const {
  Encoder out;
  for (const Incarnation& incarnation : version()->incarnations()) {
    out.U64(incarnation.first.value).U32(incarnation.pages).U64(incarnation.entries);
  }
  return out.Take();
}

void BufferHashPartition::InstallAll(std::vector<Incarnation> incarnations,
                                     bool buffer_is_written) {
  Install(std::make_shared<BufferHashVersion>(context(), shape_, prefix(), std::move(incarnations)),
          buffer_is_written);
}

bool BufferHashPartition::WantsRewrite() const {
  const auto version = this->version();
  return version->incarnations().size() >= shape_.incarnations ||
         version->entries() + buffered_entries() > shape_.Capacity();
}

Status BufferHashPartition::WriteBuffer() {
  std::vector<FlashEntry> entries = TakeSnapshot().buffered;
  if (entries.empty()) return Status::Ok();
  std::ranges::sort(entries, {}, &FlashEntry::hash);
  SILTFS_ASSIGN_OR_RETURN(auto made, shape_.format.Write(files(), kLog, prefix(), entries));
  std::vector<Incarnation> incarnations = version()->incarnations();
  incarnations.push_back(std::move(made));
  InstallAll(std::move(incarnations), /*buffer_is_written=*/true);
  return Status::Ok();
}

Status BufferHashPartition::Fill(std::span<const FlashEntry> entries) {
  if (entries.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(auto made, shape_.format.Write(files(), kLog, prefix(), entries));
  std::vector<Incarnation> incarnations;
  incarnations.push_back(std::move(made));
  InstallAll(std::move(incarnations), /*buffer_is_written=*/false);
  return Status::Ok();
}

void BufferHashPartition::ForEachFile(const VisitFile& visit) const {
  const auto version = this->version();
  for (const Incarnation& incarnation : version->incarnations()) {
    visit(incarnation.first.file(), shape_.format.AllPages(incarnation));
  }
}

void BufferHashPartition::ReleaseAll() {
  for (const Incarnation& incarnation : version()->incarnations()) {
    files().Release(incarnation.first, shape_.format.AllPages(incarnation));
  }
}

// --- Filters ---

void BufferHashPartition::DropFilters() {
  std::vector<Incarnation> incarnations = version()->incarnations();
  for (Incarnation& incarnation : incarnations) incarnation.filter.reset();
  InstallAll(std::move(incarnations), /*buffer_is_written=*/false);
}

bool BufferHashPartition::HasDroppedFilters() const { return DroppedFilterBytes() > 0; }

uint64_t BufferHashPartition::DroppedFilterBytes() const {
  uint64_t bytes = 0;
  if (shape_.format.filter_bits == 0) return bytes;
  for (const Incarnation& incarnation : version()->incarnations()) {
    if (incarnation.filter != nullptr || incarnation.filter_is_damaged) continue;
    bytes += shape_.format.FilterShape(incarnation.entries).bytes();
  }
  return bytes;
}

Status BufferHashPartition::LoadFilters() {
  const PageFiles::FilePin pin = files().Pin();
  std::vector<Incarnation> incarnations = version()->incarnations();
  for (Incarnation& incarnation : incarnations) {
    const bool was_damaged = incarnation.filter_is_damaged;
    SILTFS_RETURN_IF_ERROR(shape_.format.LoadFilter(files(), incarnation));
    if (incarnation.filter_is_damaged && !was_damaged) ++context().damaged_filters;
  }
  InstallAll(std::move(incarnations), /*buffer_is_written=*/false);
  return Status::Ok();
}

// --- Statistics ---

void BufferHashPartition::AddStats(std::vector<IndexComponentStats>& stats) const {
  const auto version = this->version();
  const uint64_t buffered = buffered_entries();
  stats.push_back(
      {.kind = "buffer",
       .entries = buffered,
       .memory_bytes = buffered == 0 ? 0 : EntryTable::MemoryFor(shape_.table),
       .occupancy = static_cast<double>(buffered) / static_cast<double>(shape_.table.places())});
  stats.push_back({.kind = "incarnations",
                   .id = version->incarnations().size(),
                   .entries = version->entries(),
                   .flash_bytes = version->pages() * kPageSize,
                   .memory_bytes = version->filter_bytes(),
                   .filter_memory_bytes = version->filter_bytes()});
}

}  // namespace siltfs
