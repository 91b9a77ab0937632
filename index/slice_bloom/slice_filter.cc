#include "index/slice_bloom/slice_filter.h"

#include <algorithm>

#include "store/base/aligned_buffer.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

// The place of a row in the pages of a slicefilter.
size_t OffsetOfRow(uint32_t columns, uint32_t position) {
  const uint32_t rows = SliceFilter::RowsPerPage(columns);
  return size_t{position / rows} * kPageSize + kFlashPageHeaderSize +
         size_t{position % rows} * SliceFilter::RowBytes(columns);
}

}  // namespace

Columns Columns::First(uint32_t count) {
  Columns columns;
  for (uint32_t i = 0; i < columns.words.size() && i * 64 < count; ++i) {
    const uint32_t bits = std::min(count - i * 64, 64U);
    columns.words[i] = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  }
  return columns;
}

Columns SliceFilter::Row(ConstPageBytes page, uint32_t position) const {
  const uint32_t rows = RowsPerPage(columns);
  const uint32_t size = RowBytes(columns);
  const ByteView row =
      ByteView(page).subspan(kFlashPageHeaderSize + size_t{position % rows} * size, size);
  Columns set;
  for (uint32_t i = 0; i < size; ++i) set.words[i / 8] |= uint64_t{row[i]} << (i % 8 * 8);
  return set;
}

Result<SliceFilter> WriteSliceFilter(PageFiles& files, size_t log, const SliceFilter& old,
                                     uint32_t column, const BloomFilter& filter,
                                     uint64_t& damaged_pages) {
  SliceFilter made;
  made.columns = std::max(old.columns, column + 1);
  const auto positions = static_cast<uint32_t>(filter.shape().bits());
  const uint32_t pages = SliceFilter::Pages(positions, made.columns);
  AlignedBuffer buffer(size_t{pages} * kPageSize);
  const MutableByteView out = buffer.view();
  if (old.columns > 0) {
    const uint32_t old_size = SliceFilter::RowBytes(old.columns);
    const uint32_t old_rows = SliceFilter::RowsPerPage(old.columns);
    const uint32_t old_pages = SliceFilter::Pages(positions, old.columns);
    SILTFS_RETURN_IF_ERROR(
        files.Read(old.first, old_pages, [&](uint32_t i, std::optional<ConstPageBytes> page) {
          const bool whole = page && PageKindOf(*page) == kSliceBloomPage;
          if (!whole) ++damaged_pages;
          const uint32_t end = std::min(positions, (i + 1) * old_rows);
          for (uint32_t position = i * old_rows; position < end; ++position) {
            const MutableByteView row = out.subspan(OffsetOfRow(made.columns, position), old_size);
            if (whole) {
              const size_t from = kFlashPageHeaderSize + size_t{position % old_rows} * old_size;
              CopyBytes(ByteView(*page).subspan(from, old_size), row);
            } else {
              std::ranges::fill(row, 0xFF);
            }
          }
          return Status::Ok();
        }));
  }
  for (uint32_t position = 0; position < positions; ++position) {
    if (!filter.Bit(position)) continue;
    out[OffsetOfRow(made.columns, position) + column / 8] |= static_cast<uint8_t>(1U << column % 8);
  }
  for (uint32_t i = 0; i < pages; ++i) {
    SetPageKind(PageBytes(out.data() + size_t{i} * kPageSize, kPageSize), kSliceBloomPage, 0);
  }
  SILTFS_ASSIGN_OR_RETURN(made.first, files.Append(log, 0, out));
  return made;
}

}  // namespace siltfs
