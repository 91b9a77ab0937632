// The sizes of plots in their two layouts, and the frame of plots with axes.
#pragma once

#include <algorithm>
#include <string_view>

#include "tools/report/plots.h"

namespace siltfs::report {

inline double WidthOf(Layout layout) { return layout == Layout::kWide ? 720 : 340; }
inline std::string_view VariantOf(Layout layout) {
  return layout == Layout::kWide ? "wide" : "narrow";
}

// About how wide a character of a label is.
inline constexpr double kCharacter = 6.4;

// The area between the axes.
struct Area {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

// Draws the grid and the labels of a vertical axis, and the base line.
inline void DrawAxis(Svg& svg, const Area& area, const Axis& axis) {
  for (const Tick& tick : axis.ticks) {
    const double y = area.bottom - tick.value / axis.top * area.height();
    svg.Line(area.left, y, area.right, y, tick.value == 0 ? "base" : "grid");
    svg.Text(area.left - 8, y + 4, Anchor::kEnd, "tick", tick.label);
  }
}

// Room for the labels of the axis.
inline double RoomFor(const Axis& axis) {
  size_t longest = 1;
  for (const Tick& tick : axis.ticks) longest = std::max(longest, tick.label.size());
  return static_cast<double>(longest) * kCharacter + 10;
}

}  // namespace siltfs::report
