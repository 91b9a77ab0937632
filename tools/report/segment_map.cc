#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/plot_layout.h"

namespace siltfs::report {
namespace {

constexpr double kGap = 2;
constexpr double kLegend = 34;
// Distances of cells. The largest that fits is used.
constexpr std::array kSteps = {32.0, 28.0, 24.0, 20.0, 16.0, 14.0, 12.0};
constexpr double kWideHeight = 200;
constexpr double kNarrowHeight = 300;

double StepFor(size_t cells, double width, double height) {
  for (const double step : kSteps) {
    const double columns = std::floor(width / step);
    if (std::ceil(static_cast<double>(cells) / columns) * step <= height) return step;
  }
  return kSteps.back();
}

std::string ClassOf(const std::optional<double>& live) {
  if (!live) return "cell unknown";
  // 0 and 10 are exact: nothing, and everything is in use.
  const int tenth = *live <= 0   ? 0
                    : *live >= 1 ? 10
                                 : std::clamp(static_cast<int>(std::lround(*live * 10)), 1, 9);
  return fmt::format("cell l{}", tenth);
}

void DrawLegend(Svg& svg, double y, double width) {
  const bool wide = width > 400;
  const double side = wide ? 13 : 11;
  double x = 1;
  const auto label = [&](std::string_view text, double room) {
    svg.Text(x, y + 11, Anchor::kStart, "tick", text);
    x += room;
  };
  label("0 %", 26);
  for (int tenth = 0; tenth <= 10; ++tenth) {
    svg.Rect(x, y, side - 1, side, 2, fmt::format("cell l{}", tenth));
    x += side;
  }
  x += 6;
  label(wide ? "100 % of the bytes in use" : "100 % in use", wide ? 180 : 90);
  svg.Rect(x, y, side - 1, side, 2, "cell unknown");
  x += side + 5;
  label("not known", 0);
}

}  // namespace

std::string Draw(const SegmentMap& map, Layout layout) {
  const double width = WidthOf(layout);
  const double step =
      StepFor(map.cells.size(), width, layout == Layout::kWide ? kWideHeight : kNarrowHeight);
  const auto columns = static_cast<size_t>(width / step);
  const size_t rows = (map.cells.size() + columns - 1) / columns;
  Svg svg(map.name, width, static_cast<double>(rows) * step + kLegend, VariantOf(layout));
  for (size_t i = 0; i < map.cells.size(); ++i) {
    const MapCell& cell = map.cells[i];
    svg.Rect(static_cast<double>(i % columns) * step + 0.5,
             static_cast<double>(i / columns) * step + 0.5, step - kGap - 0.5, step - kGap - 0.5, 2,
             ClassOf(cell.live), cell.tip,
             cell.live ? fmt::format("data-value=\"{:.4f}\"", *cell.live)
                       : std::string("data-value=\"\""));
  }
  DrawLegend(svg, static_cast<double>(rows) * step + kLegend - 18, width);
  return std::move(svg).Take();
}

}  // namespace siltfs::report
