// The pages of a BloomStore instance on flash: data pages, and the chain of their filters
// (BloomStore, section III.A).
//
// The chain has one Bloom filter for each data page. It is bit-sliced (bloom_filter.h): a filter is
// a column, and a row has one bit of each filter. It is also divided into blocks, one for each page
// of the chain, and all bits of a hash are in one block. So a lookup reads one page of the chain,
// and finds there all data pages that may have the hash. The paper reads the whole chain. Each
// chain page also has the addresses of all data pages, so a damaged chain page loses no entry.
// Format: docs/format.md, "BloomStore".
//
// Functions and plain values, safe to call from any thread; the functions that append must be
// called one at a time (page_files.h). Calls that read need a pin of the files. Units: pages,
// bytes. Errors: kIoError and kNoSpace from the device. A failed call leaves no page in use.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "index/flash/flash_page.h"
#include "index/flash/page_files.h"

namespace siltfs {

// What all instances of an index have in common.
struct BloomStoreShape {
  static constexpr size_t kDataLog = 0;
  static constexpr size_t kChainLog = 1;
  static constexpr uint8_t kDataPage = 2;
  static constexpr uint8_t kChainPage = 3;
  static constexpr uint8_t kPrefilterPage = 4;

  RecordLayout layout;
  uint32_t chain_length = 96;     // filters of an instance, and so data pages; at most 128
  uint32_t buffered_filters = 8;  // data pages that are written between two writes of the chain
  BloomShape filter;              // of a data page; one block for each page of the chain
  BloomShape prefilter;           // of an instance
  bool has_prefilter = false;

  BloomStoreShape() = default;
  BloomStoreShape(size_t record_bytes, uint32_t filter_bytes, uint32_t chain_length,
                  uint32_t buffered_filters, unsigned prefilter_bits);

  uint64_t Capacity() const { return uint64_t{chain_length} * layout.per_page(); }
  size_t block_bytes() const { return filter.block_bits * kSlicedRowBytes; }
  uint64_t rows_bytes() const { return filter.blocks * uint64_t{block_bytes()}; }
  uint32_t prefilter_pages() const;
};

// A data page whose filter is not in the chain yet.
struct DataPage {
  PageAddress page;
  uint32_t entries = 0;
  std::shared_ptr<const BloomFilter> filter;  // null: not in memory
};

// A chain in memory.
struct ChainRows {
  Bytes rows;                      // block after block
  std::vector<PageAddress> pages;  // by column: the oldest first

  // A block of a hash: the columns that may have it.
  ColumnSet Match(const BloomStoreShape& shape, uint64_t hash) const;
  void Append(const BloomStoreShape& shape, PageAddress page, const BloomFilter& filter);
  uint64_t memory_bytes() const { return rows.size() + pages.size() * sizeof(PageAddress); }
};

// A chain on flash.
struct FilterChain {
  struct PagesInFile {
    uint64_t file = 0;
    uint32_t pages = 0;
  };

  PageAddress first;
  uint32_t pages = 0;    // with the prefilter, which follows the chain
  uint32_t columns = 0;  // 0: there is no chain
  uint64_t entries = 0;
  std::vector<PagesInFile> data_pages;    // the chain's data pages, by file
  std::shared_ptr<const ChainRows> rows;  // null: not in memory
  // Whether damage of this chain was counted already.
  std::shared_ptr<std::atomic<bool>> damage_counted = std::make_shared<std::atomic<bool>>(false);

  bool has_prefilter(const BloomStoreShape& shape) const { return pages > shape.filter.blocks; }
};

// --- Data pages ---

// Writes entries, each hash once, to pages in the order given, and makes the pages' filters.
Result<std::vector<DataPage>> WriteDataPages(PageFiles& files, const BloomStoreShape& shape,
                                             std::span<const FlashEntry> entries);
// Calls visit(i, page) with each of the pages, in order; `page` is nothing if it is damaged. Reads
// pages that follow each other together.
Status ReadDataPages(const PageFiles& files, std::span<const PageAddress> pages,
                     const PageFiles::VisitPage& visit);
// The number of records of a data page.
size_t RecordsOf(const BloomStoreShape& shape, ConstPageBytes page);
// The filter of a data page. That of a damaged page rules out nothing, so that lookups find the
// damage.
BloomFilter FilterOf(const BloomStoreShape& shape, std::optional<ConstPageBytes> page);

// --- The chain ---

// Whether this is a whole page of a chain with so many columns.
bool IsChainPage(ConstPageBytes page, uint32_t columns);
// The columns of a chain page that may have a hash of this block.
ColumnSet MatchChainPage(const BloomStoreShape& shape, ConstPageBytes page, uint64_t hash);
// The address of a column's data page.
PageAddress AddressInChainPage(const BloomStoreShape& shape, ConstPageBytes page, size_t column);

// Writes a chain, and the prefilter unless it is null. `entries` are those of all data pages.
Result<FilterChain> WriteChain(PageFiles& files, const BloomStoreShape& shape,
                               std::shared_ptr<const ChainRows> rows, uint64_t entries,
                               const BloomFilter* prefilter);
struct ReadChain {
  ChainRows rows;
  bool damaged = false;  // a chain page was; its filters were made again from the data pages
};
// Reads a chain into memory. Nothing if all of its pages are damaged.
Result<std::optional<ReadChain>> ReadWholeChain(const PageFiles& files,
                                                const BloomStoreShape& shape,
                                                const FilterChain& chain);
// The addresses of a chain's data pages, the oldest first. Nothing if all chain pages are damaged.
Result<std::optional<std::vector<PageAddress>>> ReadAddresses(const PageFiles& files,
                                                              const BloomStoreShape& shape,
                                                              const FilterChain& chain);
// The prefilter beside a chain. Nothing if there is none, or if it is damaged.
Result<std::optional<BloomFilter>> ReadPrefilter(const PageFiles& files,
                                                 const BloomStoreShape& shape,
                                                 const FilterChain& chain);

}  // namespace siltfs
