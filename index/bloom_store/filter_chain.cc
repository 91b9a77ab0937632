#include "index/bloom_store/filter_chain.h"

#include <algorithm>
#include <array>

#include "index/flash/payload_pages.h"
#include "store/base/aligned_buffer.h"
#include "store/base/coding.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

constexpr size_t kAddressSize = 8;

PageBytes PageOf(AlignedBuffer& pages, size_t i) {
  return PageBytes(pages.data() + i * kPageSize, kPageSize);
}

size_t AddressesAt(const BloomStoreShape& shape) {
  return kFlashPageHeaderSize + shape.block_bytes();
}

ByteView RowsOf(const BloomStoreShape& shape, ConstPageBytes page) {
  return page.subspan(kFlashPageHeaderSize, shape.block_bytes());
}

std::vector<FilterChain::PagesInFile> ByFile(const std::vector<PageAddress>& pages) {
  std::vector<FilterChain::PagesInFile> files;
  for (const PageAddress page : pages) {
    const auto found = std::ranges::find(files, page.file(), &FilterChain::PagesInFile::file);
    if (found == files.end()) {
      files.push_back({.file = page.file(), .pages = 1});
    } else {
      ++found->pages;
    }
  }
  return files;
}

}  // namespace

BloomStoreShape::BloomStoreShape(size_t record_bytes, uint32_t filter_bytes, uint32_t length,
                                 uint32_t buffered, unsigned prefilter_bits)
    : layout(record_bytes),
      chain_length(length),
      buffered_filters(buffered),
      has_prefilter(prefilter_bits > 0) {
  const auto most_rows = static_cast<uint32_t>(
      (kPageSize - kFlashPageHeaderSize - chain_length * kAddressSize) / kSlicedRowBytes);
  const uint32_t bits = filter_bytes * 8;
  filter.blocks = (bits + most_rows - 1) / most_rows;
  filter.block_bits = (bits + filter.blocks - 1) / filter.blocks;
  filter.probes =
      BloomShape::BestProbes(static_cast<double>(bits) / static_cast<double>(layout.per_page()));
  if (has_prefilter) prefilter = BloomShape::Flat(Capacity(), prefilter_bits);
}

uint32_t BloomStoreShape::prefilter_pages() const {
  return has_prefilter ? PayloadPages(prefilter.bytes()) : 0;
}

ColumnSet ChainRows::Match(const BloomStoreShape& shape, uint64_t hash) const {
  const size_t block = shape.filter.BlockOf(hash) * shape.block_bytes();
  return MatchSliced(shape.filter, ByteView(rows).subspan(block, shape.block_bytes()), hash);
}

void ChainRows::Append(const BloomStoreShape& shape, PageAddress page, const BloomFilter& filter) {
  rows.resize(shape.rows_bytes());
  for (uint32_t block = 0; block < shape.filter.blocks; ++block) {
    SetSlicedColumn(MutableByteView(rows).subspan(block * shape.block_bytes(), shape.block_bytes()),
                    block, pages.size(), filter);
  }
  pages.push_back(page);
}

// --- Data pages ---

Result<std::vector<DataPage>> WriteDataPages(PageFiles& files, const BloomStoreShape& shape,
                                             std::span<const FlashEntry> entries) {
  std::vector<DataPage> made;
  if (entries.empty()) return made;
  const size_t per_page = shape.layout.per_page();
  AlignedBuffer pages(shape.layout.PagesFor(entries.size()) * kPageSize);
  for (size_t at = 0; at < entries.size(); at += per_page) {
    const auto here = entries.subspan(at, std::min(per_page, entries.size() - at));
    const PageBytes page = PageOf(pages, made.size());
    auto filter = std::make_shared<BloomFilter>(shape.filter);
    for (size_t i = 0; i < here.size(); ++i) {
      shape.layout.Write(page, i, here[i]);
      filter->Add(here[i].hash);
    }
    SetPageKind(page, BloomStoreShape::kDataPage, static_cast<uint16_t>(here.size()));
    made.push_back(
        {.page = {}, .entries = static_cast<uint32_t>(here.size()), .filter = std::move(filter)});
  }
  SILTFS_ASSIGN_OR_RETURN(const PageAddress first,
                          files.Append(BloomStoreShape::kDataLog, 0, pages.view()));
  for (uint32_t i = 0; i < made.size(); ++i) made[i].page = first + i;
  return made;
}

Status ReadDataPages(const PageFiles& files, std::span<const PageAddress> pages,
                     const PageFiles::VisitPage& visit) {
  for (size_t begin = 0; begin < pages.size();) {
    size_t end = begin + 1;
    while (end < pages.size() && pages[end] == pages[end - 1] + 1) ++end;
    SILTFS_RETURN_IF_ERROR(files.Read(pages[begin], static_cast<uint32_t>(end - begin),
                                      [&](uint32_t i, std::optional<ConstPageBytes> page) {
                                        if (page && PageKindOf(*page) != BloomStoreShape::kDataPage)
                                          page.reset();
                                        return visit(static_cast<uint32_t>(begin) + i, page);
                                      }));
    begin = end;
  }
  return Status::Ok();
}

size_t RecordsOf(const BloomStoreShape& shape, ConstPageBytes page) {
  return std::min<size_t>(PageCountOf(page), shape.layout.per_page());
}

BloomFilter FilterOf(const BloomStoreShape& shape, std::optional<ConstPageBytes> page) {
  if (!page) {
    // Missing bytes count as ones.
    constexpr std::array<uint8_t, 1> kOnes = {0xFF};
    return {shape.filter, kOnes};
  }
  BloomFilter filter(shape.filter);
  for (size_t i = 0; i < RecordsOf(shape, *page); ++i) filter.Add(shape.layout.HashAt(*page, i));
  return filter;
}

// --- The chain ---

bool IsChainPage(ConstPageBytes page, uint32_t columns) {
  return PageKindOf(page) == BloomStoreShape::kChainPage && PageCountOf(page) == columns;
}

ColumnSet MatchChainPage(const BloomStoreShape& shape, ConstPageBytes page, uint64_t hash) {
  return MatchSliced(shape.filter, RowsOf(shape, page), hash);
}

PageAddress AddressInChainPage(const BloomStoreShape& shape, ConstPageBytes page, size_t column) {
  return {Decoder(page.subspan(AddressesAt(shape) + column * kAddressSize)).U64()};
}

Result<FilterChain> WriteChain(PageFiles& files, const BloomStoreShape& shape,
                               std::shared_ptr<const ChainRows> rows, uint64_t entries,
                               const BloomFilter* prefilter) {
  FilterChain chain;
  chain.columns = static_cast<uint32_t>(rows->pages.size());
  chain.entries = entries;
  chain.pages = shape.filter.blocks + (prefilter == nullptr ? 0 : shape.prefilter_pages());
  chain.data_pages = ByFile(rows->pages);
  Encoder addresses;
  for (const PageAddress page : rows->pages) addresses.U64(page.value);
  AlignedBuffer pages(size_t{chain.pages} * kPageSize);
  for (uint32_t block = 0; block < shape.filter.blocks; ++block) {
    const PageBytes page = PageOf(pages, block);
    SetPageKind(page, BloomStoreShape::kChainPage, static_cast<uint16_t>(chain.columns));
    CopyBytes(ByteView(rows->rows).subspan(block * shape.block_bytes(), shape.block_bytes()),
              page.subspan(kFlashPageHeaderSize));
    CopyBytes(addresses.view(), page.subspan(AddressesAt(shape)));
  }
  if (prefilter != nullptr) {
    WritePayload(pages.view().subspan(size_t{shape.filter.blocks} * kPageSize),
                 BloomStoreShape::kPrefilterPage, prefilter->bytes());
  }
  SILTFS_ASSIGN_OR_RETURN(chain.first, files.Append(BloomStoreShape::kChainLog, 0, pages.view()));
  chain.rows = std::move(rows);
  return chain;
}

Result<std::optional<ReadChain>> ReadWholeChain(const PageFiles& files,
                                                const BloomStoreShape& shape,
                                                const FilterChain& chain) {
  ReadChain read;
  read.rows.rows.resize(shape.rows_bytes());
  const auto block_rows = [&](uint32_t block) {
    return MutableByteView(read.rows.rows)
        .subspan(block * shape.block_bytes(), shape.block_bytes());
  };
  std::vector<uint32_t> damaged;
  SILTFS_RETURN_IF_ERROR(files.Read(
      chain.first, shape.filter.blocks, [&](uint32_t block, std::optional<ConstPageBytes> page) {
        if (!page || !IsChainPage(*page, chain.columns)) {
          damaged.push_back(block);
          return Status::Ok();
        }
        CopyBytes(RowsOf(shape, *page), block_rows(block));
        if (!read.rows.pages.empty()) return Status::Ok();
        for (uint32_t column = 0; column < chain.columns; ++column) {
          read.rows.pages.push_back(AddressInChainPage(shape, *page, column));
        }
        return Status::Ok();
      }));
  if (read.rows.pages.empty()) return std::optional<ReadChain>();
  read.damaged = !damaged.empty();
  if (read.damaged) {
    SILTFS_RETURN_IF_ERROR(ReadDataPages(
        files, read.rows.pages, [&](uint32_t column, std::optional<ConstPageBytes> page) {
          const BloomFilter filter = FilterOf(shape, page);
          for (const uint32_t block : damaged) {
            SetSlicedColumn(block_rows(block), block, column, filter);
          }
          return Status::Ok();
        }));
  }
  return std::optional(std::move(read));
}

Result<std::optional<std::vector<PageAddress>>> ReadAddresses(const PageFiles& files,
                                                              const BloomStoreShape& shape,
                                                              const FilterChain& chain) {
  if (chain.columns == 0) return std::optional(std::vector<PageAddress>());
  if (chain.rows != nullptr) return std::optional(chain.rows->pages);
  std::optional<std::vector<PageAddress>> addresses;
  for (uint32_t block = 0; block < shape.filter.blocks && !addresses; ++block) {
    SILTFS_RETURN_IF_ERROR(
        files.Read(chain.first + block, 1, [&](uint32_t, std::optional<ConstPageBytes> page) {
          if (!page || !IsChainPage(*page, chain.columns)) return Status::Ok();
          addresses.emplace();
          for (uint32_t column = 0; column < chain.columns; ++column) {
            addresses->push_back(AddressInChainPage(shape, *page, column));
          }
          return Status::Ok();
        }));
  }
  return addresses;
}

Result<std::optional<BloomFilter>> ReadPrefilter(const PageFiles& files,
                                                 const BloomStoreShape& shape,
                                                 const FilterChain& chain) {
  if (!chain.has_prefilter(shape)) return std::optional<BloomFilter>();
  SILTFS_ASSIGN_OR_RETURN(const auto bytes,
                          ReadPayload(files, chain.first + shape.filter.blocks,
                                      shape.prefilter.bytes(), BloomStoreShape::kPrefilterPage));
  if (!bytes) return std::optional<BloomFilter>();
  return std::optional(BloomFilter(shape.prefilter, *bytes));
}

}  // namespace siltfs
