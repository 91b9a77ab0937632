#include "index/slice_hash/slice_table.h"

#include <algorithm>
#include <utility>

#include "index/flash/payload_pages.h"
#include "store/base/aligned_buffer.h"

namespace siltfs {

uint32_t SliceTable::FilterPages(const SliceShape& shape) const {
  return shape.filter_bits == 0 ? 0 : PayloadPages(FilterShape(shape).bytes());
}

std::optional<FlashEntry> SliceTable::Find(const SliceShape& shape, ConstPageBytes page,
                                           uint32_t bucket, uint64_t hash) const {
  if (PageKindOf(page) != kSlicePage) return std::nullopt;
  const uint32_t begin = shape.FirstSlot(incarnations, bucket);
  const uint32_t end = begin + shape.SlotsOfSlice(incarnations);
  for (uint32_t slot = begin; slot < end; ++slot) {
    if (shape.layout.HashAt(page, slot) == hash) return shape.layout.Read(page, slot);
  }
  return std::nullopt;
}

Status SliceTable::Read(const PageFiles& files, const SliceShape& shape, const Visit& visit,
                        uint64_t& damaged_pages) const {
  const uint32_t together = shape.SlicesPerPage(incarnations);
  const uint32_t slots = shape.SlotsOfSlice(incarnations);
  return files.Read(first, shape.Pages(incarnations),
                    [&](uint32_t i, std::optional<ConstPageBytes> page) {
                      if (!page || PageKindOf(*page) != kSlicePage) {
                        ++damaged_pages;
                        return Status::Ok();
                      }
                      const uint32_t end = std::min(shape.buckets, (i + 1) * together);
                      for (uint32_t bucket = i * together, slot = 0; bucket < end; ++bucket) {
                        for (const uint32_t slice_end = slot + slots; slot < slice_end; ++slot) {
                          if (shape.layout.HashAt(*page, slot) == 0) continue;
                          visit(bucket, shape.layout.Read(*page, slot));
                        }
                      }
                      return Status::Ok();
                    });
}

Status SliceTable::LoadFilter(const PageFiles& files, const SliceShape& shape) {
  if (shape.filter_bits == 0 || filter != nullptr || filter_is_damaged) return Status::Ok();
  const BloomShape filter_shape = FilterShape(shape);
  SILTFS_ASSIGN_OR_RETURN(const auto bytes, ReadPayload(files, first + shape.Pages(incarnations),
                                                        filter_shape.bytes(), kSliceFilterPage));
  filter_is_damaged = !bytes;
  if (bytes) filter = std::make_shared<BloomFilter>(filter_shape, *bytes);
  return Status::Ok();
}

namespace {

// Writes the slices of a placement into pages, which must be zero.
void WriteSlices(const SliceShape& shape, const SlicePlacement& placement, uint32_t incarnations,
                 MutableByteView pages) {
  const uint32_t together = shape.SlicesPerPage(incarnations);
  for (uint32_t i = 0; i < shape.Pages(incarnations); ++i) {
    const PageBytes page(pages.data() + size_t{i} * kPageSize, kPageSize);
    uint16_t count = 0;
    for (uint32_t b = i * together; b < std::min(shape.buckets, (i + 1) * together); ++b) {
      uint32_t slot = shape.FirstSlot(incarnations, b);
      for (const uint32_t number : placement.Members(b)) {
        shape.layout.Write(page, slot++, placement.entries()[number]);
        ++count;
      }
    }
    SetPageKind(page, kSlicePage, count);
  }
}

}  // namespace

Result<SliceTable> WriteSliceTable(PageFiles& files, size_t log, const SliceShape& shape,
                                   SlicePlacement& placement, uint32_t most_incarnations) {
  SliceTable made;
  made.entries = placement.entries().size();
  uint64_t incarnations = shape.IncarnationsFor(made.entries);
  while (incarnations <= most_incarnations &&
         !placement.Place(shape.ways() * static_cast<uint32_t>(incarnations))) {
    ++incarnations;
  }
  if (incarnations > most_incarnations) {
    // Buffers and rewrites leave room, so the hashes are not those of names.
    return Status(StatusCode::kCorruption, "a slicetable has no room for its entries");
  }
  made.incarnations = static_cast<uint32_t>(incarnations);
  // With all slots of a page, more entries are in their first bucket.
  const uint32_t slots = shape.SlotsOfSlice(made.incarnations);
  if (slots != shape.ways() * made.incarnations) placement.Place(slots);
  AlignedBuffer pages(size_t{made.AllPages(shape)} * kPageSize);
  WriteSlices(shape, placement, made.incarnations, pages.view());
  if (shape.filter_bits != 0) {
    auto filter = std::make_shared<BloomFilter>(made.FilterShape(shape));
    for (const FlashEntry& entry : placement.entries()) filter->Add(entry.hash);
    WritePayload(pages.view().subspan(size_t{shape.Pages(made.incarnations)} * kPageSize),
                 kSliceFilterPage, filter->bytes());
    made.filter = std::move(filter);
  }
  SILTFS_ASSIGN_OR_RETURN(made.first, files.Append(log, 0, pages.view()));
  return made;
}

}  // namespace siltfs
