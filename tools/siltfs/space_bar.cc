#include "tools/siltfs/space_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/size_text.h"

namespace siltfs {
namespace {

std::string Glyph(const BarPart& part, const TextStyle& style) {
  return style.utf8 ? std::string(part.utf8) : std::string(1, part.ascii);
}

}  // namespace

std::vector<size_t> CellsOf(const std::vector<BarPart>& parts, size_t cells) {
  long double total = 0;
  for (const BarPart& part : parts) total += static_cast<long double>(part.bytes);
  std::vector<size_t> given(parts.size());
  if (total == 0) return given;
  size_t used = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes == 0) continue;
    const auto share = static_cast<size_t>(static_cast<long double>(parts[i].bytes) / total *
                                           static_cast<long double>(cells));
    given[i] = std::max<size_t>(share, 1);
    used += given[i];
  }
  // The largest part takes what rounding has left over, or gives what small parts have taken.
  while (used != cells) {
    const auto largest = std::ranges::max_element(given);
    if (used < cells) {
      *largest += cells - used;
      used = cells;
    } else if (*largest > 1) {
      --*largest;
      --used;
    } else {  // there are more parts than cells
      *std::ranges::find(given, size_t{1}) = 0;
      --used;
    }
  }
  return given;
}

std::string FormatBar(const std::vector<BarPart>& parts, size_t columns, const TextStyle& style) {
  const size_t cells = columns > 2 ? columns - 2 : 1;
  const std::vector<size_t> given = CellsOf(parts, cells);
  std::string bar;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string run;
    for (size_t cell = 0; cell < given[i]; ++cell) run += Glyph(parts[i], style);
    if (!run.empty()) bar += Tinted(run, parts[i].tint, style);
  }
  return "[" + bar + "]";
}

std::vector<std::string> LegendOf(const std::vector<BarPart>& parts, const TextStyle& style) {
  std::vector<std::string> legend;
  for (const BarPart& part : parts) {
    if (part.bytes == 0) continue;
    legend.push_back(fmt::format("{} {} {}", Tinted(Glyph(part, style), part.tint, style),
                                 FormatSize(part.bytes), part.name));
  }
  return legend;
}

}  // namespace siltfs
