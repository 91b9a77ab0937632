// The address of a page in the page files of an index (page_files.h).
//
// A plain value.
#pragma once

#include <compare>
#include <cstdint>

namespace siltfs {

struct PageAddress {
  static constexpr unsigned kPageBits = 24;
  static constexpr uint32_t kMostPages = 1U << kPageBits;  // of a file
  static constexpr uint64_t kMostFile = (uint64_t{1} << 39) - 1;

  uint64_t value = 0;  // 0: none; file ids begin with 1

  static PageAddress Of(uint64_t file, uint32_t page) { return {file << kPageBits | page}; }
  uint64_t file() const { return value >> kPageBits; }
  uint32_t page() const { return static_cast<uint32_t>(value & (kMostPages - 1)); }
  PageAddress operator+(uint32_t pages) const { return {value + pages}; }

  auto operator<=>(const PageAddress&) const = default;
};

}  // namespace siltfs
