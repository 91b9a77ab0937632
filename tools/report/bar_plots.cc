// Upright and lying bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/plot_layout.h"

namespace siltfs::report {
namespace {

constexpr double kHeight = 250;
constexpr double kRowHeight = 40;
constexpr double kWidestBar = 64;
constexpr double kLeastBar = 1.5;  // so that a rare class is seen

std::string ValueOf(uint64_t value) { return fmt::format("data-value=\"{}\"", value); }

// Draws labels below the bars, and leaves out those that would touch the label before.
void DrawLabels(Svg& svg, const BarPlot& plot, const Area& area, double slot) {
  double free_from = 0;
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    const std::string& label = plot.bars[i].label;
    if (label.empty()) continue;
    const double left = area.left + slot * static_cast<double>(i);
    const double x = plot.labels_at_edges ? left : left + slot / 2;
    const double half = static_cast<double>(label.size()) * kCharacter / 2;
    if (x - half < free_from) continue;
    free_from = x + half + 6;
    svg.Text(x, area.bottom + 17, Anchor::kMiddle, "tick", label);
  }
}

}  // namespace

std::string Draw(const BarPlot& plot, Layout layout) {
  uint64_t greatest = 0;
  for (const Bar& bar : plot.bars) greatest = std::max(greatest, bar.value);
  const Axis axis = MakeAxis(static_cast<double>(greatest), plot.quantity, 4);
  const Area area = {.left = RoomFor(axis),
                     .top = plot.values_above ? 22.0 : 10.0,
                     .right = WidthOf(layout) - 14,
                     .bottom = kHeight - 44};
  Svg svg(plot.name, WidthOf(layout), kHeight, VariantOf(layout));
  DrawAxis(svg, area, axis);
  const double slot = area.width() / static_cast<double>(std::max<size_t>(plot.bars.size(), 1));
  const double gap = std::max(std::clamp(slot * 0.15, 1.0, 14.0), slot - kWidestBar);
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    const Bar& bar = plot.bars[i];
    const double x = area.left + slot * static_cast<double>(i);
    double height = static_cast<double>(bar.value) / axis.top * area.height();
    if (bar.value > 0) {
      height = std::max(height, kLeastBar);
      svg.Bar(x + gap / 2, area.bottom - height, slot - gap, height, "bar s1", bar.tip,
              ValueOf(bar.value));
    }
    if (plot.values_above && slot >= 30)
      svg.Text(x + slot / 2, area.bottom - height - 6, Anchor::kMiddle, "value",
               ShortText(static_cast<double>(bar.value), plot.quantity));
  }
  DrawLabels(svg, plot, area, slot);
  svg.Text(area.left + area.width() / 2, kHeight - 6, Anchor::kMiddle, "axis", plot.x_title);
  return std::move(svg).Take();
}

std::string Draw(const RowPlot& plot, Layout layout) {
  const bool wide = layout == Layout::kWide;
  size_t longest_label = 1;
  size_t longest_text = 1;
  double greatest = 0;
  for (const Row& row : plot.rows) {
    longest_label = std::max(longest_label, row.label.size());
    longest_text = std::max(longest_text, row.text.size());
    greatest = std::max(greatest, row.value);
  }
  // On a narrow page the label is above its bar.
  const double left = wide ? static_cast<double>(longest_label) * kCharacter + 18 : 1;
  const double right = WidthOf(layout) - static_cast<double>(longest_text) * kCharacter - 14;
  const double row_height = wide ? kRowHeight : kRowHeight + 14;
  const double height = row_height * static_cast<double>(plot.rows.size()) + 4;
  Svg svg(plot.name, WidthOf(layout), height, VariantOf(layout));
  svg.Line(left, 2, left, height - 2, "base");
  double y = 2;
  for (const Row& row : plot.rows) {
    const double bar_y = wide ? y + 7 : y + 20;
    const double bar_width =
        greatest > 0 ? std::max(row.value / greatest * (right - left), kLeastBar) : 0;
    if (wide) {
      svg.Text(left - 10, bar_y + 14, Anchor::kEnd, "label", row.label);
    } else {
      svg.Text(left + 4, y + 14, Anchor::kStart, "label", row.label);
    }
    svg.Rect(left, bar_y, row.value > 0 ? bar_width : 0, 20, 3, "bar " + row.cls,
             row.label + ": " + row.text, fmt::format("data-value=\"{}\"", row.value));
    svg.Text(left + (row.value > 0 ? bar_width : 0) + 8, bar_y + 14, Anchor::kStart, "value",
             row.text);
    y += row_height;
  }
  return std::move(svg).Take();
}

}  // namespace siltfs::report
