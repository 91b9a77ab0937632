// A bar that shows how the disk below a store is used.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/siltfs/text_layout.h"

namespace siltfs {

struct BarPart {
  std::string name;
  uint64_t bytes = 0;
  char ascii = ' ';
  const char* utf8 = " ";  // one character
  Tint tint = Tint::kNone;
};

// Divides the cells among the parts in proportion to their bytes. Each part with bytes gets a cell
// if there are enough cells, so that no part is invisible.
std::vector<size_t> CellsOf(const std::vector<BarPart>& parts, size_t cells);

// The bar between brackets, which takes `columns` columns.
std::string FormatBar(const std::vector<BarPart>& parts, size_t columns, const TextStyle& style);

// What the characters of the bar mean: "# 1.0 GiB data", one text for each part with bytes.
std::vector<std::string> LegendOf(const std::vector<BarPart>& parts, const TextStyle& style);

}  // namespace siltfs
