#include <fmt/format.h>

#include <algorithm>

#include "store/base/size_text.h"
#include "tools/report/plot_layout.h"

namespace siltfs::report {
namespace {

constexpr double kLabels = 64;  // room for "Memory" and "Flash"
constexpr double kColumnGap = 46;
constexpr double kBoxHeight = 82;
constexpr double kWidest = 220;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

struct Totals {
  uint64_t entries = 0;
  uint64_t memory_bytes = 0;
};

Totals TotalsOf(const IndexDiagram& diagram) {
  Totals totals;
  for (const IndexKind& kind : diagram.kinds) {
    totals.entries += kind.entries;
    totals.memory_bytes += kind.memory_bytes;
  }
  return totals;
}

struct Place {
  double x = 0;
  double y = 0;
  double width = 0;
};

// A box with three lines, and a bar for its share of the whole.
void DrawBox(Svg& svg, const Place& place, const char* cls, double share, const std::string& first,
             const std::string& second, const std::string& tip, const std::string& data) {
  svg.Rect(place.x, place.y, place.width, kBoxHeight, 8, fmt::format("box {}", cls), tip, data);
  const double middle = place.x + place.width / 2;
  svg.Text(middle, place.y + 26, Anchor::kMiddle, "strong", first);
  svg.Text(middle, place.y + 45, Anchor::kMiddle, "tick", second);
  const double left = place.x + 12;
  const double room = place.width - 24;
  svg.Rect(left, place.y + 60, room, 6, 3, "track");
  if (share > 0)
    svg.Rect(left, place.y + 60, std::max(room * share, 3.0), 6, 3, fmt::format("fill {}", cls));
}

void DrawKind(Svg& svg, const IndexKind& kind, const Totals& totals, const Place& memory,
              const Place& flash) {
  const double per_entry = kind.entries == 0 ? 0
                                             : static_cast<double>(kind.memory_bytes) /
                                                   static_cast<double>(kind.entries);
  const double memory_share = Share(kind.memory_bytes, totals.memory_bytes);
  const double entry_share = Share(kind.entries, totals.entries);
  DrawBox(svg, memory, "s1", memory_share, FormatSize(kind.memory_bytes),
          kind.entries == 0 ? "empty" : fmt::format("{:.2f} B an entry", per_entry),
          fmt::format("{} in memory: {}, {:.1f} % of the index's memory", kind.title,
                      FormatSize(kind.memory_bytes), 100 * memory_share),
          fmt::format("data-kind=\"{}\" data-memory=\"{}\"", Escape(kind.kind), kind.memory_bytes));
  DrawBox(svg, flash, "s2", entry_share, FormatCount(kind.entries) + " entries",
          FormatSize(kind.flash_bytes),
          fmt::format("{} on flash: {}, {:.1f} % of the entries", kind.title,
                      FormatSize(kind.flash_bytes), 100 * entry_share),
          fmt::format("data-kind=\"{}\" data-value=\"{}\" data-flash=\"{}\"", Escape(kind.kind),
                      kind.entries, kind.flash_bytes));
}

std::string Heading(const IndexKind& kind) {
  return kind.count == 1 ? kind.title : fmt::format("{} × {}", kind.count, kind.title);
}

void DrawArrow(Svg& svg, double from_x, double from_y, double to_x, double to_y) {
  svg.Line(from_x, from_y, to_x, to_y, "arrow");
  const bool lying = from_y == to_y;
  svg.Path(lying ? fmt::format("M{} {}l7 -4.5v9z", Coordinate(to_x), Coordinate(to_y))
                 : fmt::format("M{} {}l-4.5 7h9z", Coordinate(to_x), Coordinate(to_y)),
           "head");
}

// Columns: memory above, flash below, as in the paper.
std::string DrawWide(const IndexDiagram& diagram) {
  const double width = WidthOf(Layout::kWide);
  const Totals totals = TotalsOf(diagram);
  const auto count = static_cast<double>(std::max<size_t>(diagram.kinds.size(), 1));
  const double column = std::min(kWidest, (width - kLabels - kColumnGap * (count - 1) - 2) / count);
  const double memory_y = 40;
  const double border_y = memory_y + kBoxHeight + 16;
  const double flash_y = border_y + 16;
  Svg svg(diagram.name, width, flash_y + kBoxHeight + 34, "wide");
  svg.Text(0, memory_y + kBoxHeight / 2 + 4, Anchor::kStart, "axis", "Memory");
  svg.Text(0, flash_y + kBoxHeight / 2 + 4, Anchor::kStart, "axis", "Flash");
  svg.Line(0, border_y, width, border_y, "border");
  double x = kLabels;
  for (const IndexKind& kind : diagram.kinds) {
    svg.Text(x + column / 2, 24, Anchor::kMiddle, "heading", Heading(kind));
    DrawKind(svg, kind, totals, {x, memory_y, column}, {x, flash_y, column});
    if (!kind.step.empty()) {
      const double y = flash_y + kBoxHeight / 2;
      DrawArrow(svg, x - 4, y, x - kColumnGap + 6, y);
      svg.Text(x - kColumnGap / 2, flash_y + kBoxHeight + 20, Anchor::kMiddle, "tick", kind.step);
    }
    x += column + kColumnGap;
  }
  return std::move(svg).Take();
}

// Rows: memory on the left, flash on the right, new entries below.
std::string DrawNarrow(const IndexDiagram& diagram) {
  const double width = WidthOf(Layout::kNarrow);
  const Totals totals = TotalsOf(diagram);
  const double column = (width - 12) / 2;
  const double row = kBoxHeight + 52;
  Svg svg(diagram.name, width, 20 + row * static_cast<double>(diagram.kinds.size()), "narrow");
  svg.Text(column / 2, 12, Anchor::kMiddle, "axis", "Memory");
  svg.Text(column * 1.5 + 12, 12, Anchor::kMiddle, "axis", "Flash");
  double y = 20;
  for (const IndexKind& kind : diagram.kinds) {
    if (!kind.step.empty()) {
      DrawArrow(svg, column * 1.5 + 12, y + 8, column * 1.5 + 12, y - 8);
      svg.Text(column * 1.5 + 24, y + 5, Anchor::kStart, "tick", kind.step);
    }
    svg.Text(0, y + 22, Anchor::kStart, "heading", Heading(kind));
    DrawKind(svg, kind, totals, {0.5, y + 32, column - 1}, {column + 12, y + 32, column - 1});
    y += row;
  }
  return std::move(svg).Take();
}

}  // namespace

std::string Draw(const IndexDiagram& diagram, Layout layout) {
  return layout == Layout::kWide ? DrawWide(diagram) : DrawNarrow(diagram);
}

}  // namespace siltfs::report
