#include "index/buffer_hash/incarnation.h"

#include <algorithm>

#include "index/flash/payload_pages.h"
#include "store/base/aligned_buffer.h"

namespace siltfs {
namespace {

uint32_t PageAmong(uint32_t pages, const HashPrefix& prefix, uint64_t hash) {
  // prefix.depth <= 24
  const uint64_t position = hash << prefix.depth;
  return static_cast<uint32_t>((position >> 32) * pages >> 32);
}

// More pages than this, as a multiple of the least, are not tried. Hashes of names need a few
// percent more than the least.
constexpr uint32_t kMostEmptiness = 64;

// The least number of pages, tried in steps, in which no page gets too many entries. 0 if there is
// none, because many hashes are nearly equal; only a forged index has such hashes.
uint32_t PagesFor(std::span<const FlashEntry> entries, const HashPrefix& prefix, size_t per_page) {
  auto pages = static_cast<uint32_t>((entries.size() + per_page - 1) / per_page);
  const uint64_t most = std::min<uint64_t>(uint64_t{pages} * kMostEmptiness + kMostEmptiness,
                                           PageAddress::kMostPages);
  while (pages <= most) {
    size_t in_page = 0;
    uint32_t page = 0;
    const bool fits = std::ranges::all_of(entries, [&](const FlashEntry& entry) {
      const uint32_t next = PageAmong(pages, prefix, entry.hash);
      in_page = next == page ? in_page + 1 : 1;
      page = next;
      return in_page <= per_page;
    });
    if (fits) return pages;
    pages += 1 + pages / 64;
  }
  return 0;
}

}  // namespace

uint32_t Incarnation::PageOf(const HashPrefix& prefix, uint64_t hash) const {
  return PageAmong(pages, prefix, hash);
}

uint32_t IncarnationFormat::FilterPages(const Incarnation& incarnation) const {
  return filter_bits == 0 ? 0 : PayloadPages(FilterShape(incarnation.entries).bytes());
}

Result<Incarnation> IncarnationFormat::Write(PageFiles& files, size_t log, const HashPrefix& prefix,
                                             std::span<const FlashEntry> entries) const {
  Incarnation made;
  made.entries = entries.size();
  made.pages = PagesFor(entries, prefix, layout.per_page());
  if (made.pages == 0) return Status(StatusCode::kCorruption, "has entries with forged hashes");
  AlignedBuffer pages(size_t{AllPages(made)} * kPageSize);
  const auto page_at = [&](uint32_t i) {
    return PageBytes(pages.data() + size_t{i} * kPageSize, kPageSize);
  };
  for (uint32_t i = 0; i < made.pages; ++i) SetPageKind(page_at(i), kRecordPage, 0);
  for (const FlashEntry& entry : entries) {
    const PageBytes page = page_at(made.PageOf(prefix, entry.hash));
    const uint16_t count = PageCountOf(page);
    layout.Write(page, count, entry);
    SetPageKind(page, kRecordPage, count + 1);
  }
  if (filter_bits != 0) {
    auto filter = std::make_shared<BloomFilter>(FilterShape(made.entries));
    for (const FlashEntry& entry : entries) filter->Add(entry.hash);
    WritePayload(pages.view().subspan(size_t{made.pages} * kPageSize), kFilterPage,
                 filter->bytes());
    made.filter = std::move(filter);
  }
  SILTFS_ASSIGN_OR_RETURN(made.first, files.Append(log, 0, pages.view()));
  return made;
}

Status IncarnationFormat::LoadFilter(const PageFiles& files, Incarnation& incarnation) const {
  if (filter_bits == 0 || incarnation.filter != nullptr || incarnation.filter_is_damaged) {
    return Status::Ok();
  }
  const BloomShape shape = FilterShape(incarnation.entries);
  SILTFS_ASSIGN_OR_RETURN(
      const auto bytes,
      ReadPayload(files, incarnation.first + incarnation.pages, shape.bytes(), kFilterPage));
  incarnation.filter_is_damaged = !bytes;
  if (bytes) incarnation.filter = std::make_shared<BloomFilter>(shape, *bytes);
  return Status::Ok();
}

}  // namespace siltfs
