// Plots over time: lines, and scrubs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/report/plot_layout.h"

namespace siltfs::report {
namespace {

// Below this many points each one is marked.
constexpr size_t kMostMarked = 40;
constexpr double kLabelDistance = 17;  // between the labels at the ends of lines
constexpr double kScrubHeight = 150;

struct TimeScale {
  double first = 0;
  double last = 0;
  double left = 0;
  double right = 0;

  double operator()(double time) const {
    if (last <= first) return (left + right) / 2;
    return left + (time - first) / (last - first) * (right - left);
  }
};

void DrawTimes(Svg& svg, const TimeScale& x, double y, double grid_top) {
  const auto about = static_cast<int>((x.right - x.left) / 75);
  bool is_labelled = false;
  for (const Tick& tick : TimeTicks(x.first, x.last, about)) {
    if (x(tick.value) < x.left + 14 || x(tick.value) > x.right - 14) continue;
    svg.Line(x(tick.value), grid_top, x(tick.value), y, "grid");
    svg.Text(x(tick.value), y + 17, Anchor::kMiddle, "tick", tick.label);
    is_labelled = true;
  }
  if (is_labelled || x.last < x.first) return;
  // The plot spans less than the distance of two round times.
  svg.Text(x.left, y + 17, Anchor::kStart, "tick", TimeText(x.first));
  if (TimeText(x.last) != TimeText(x.first))
    svg.Text(x.right, y + 17, Anchor::kEnd, "tick", TimeText(x.last));
}

std::string PathOf(const std::vector<TimePoint>& points, const TimeScale& x, const Area& area,
                   double top) {
  std::string d;
  for (const TimePoint& point : points) {
    d += fmt::format("{}{} {}", d.empty() ? "M" : "L", Coordinate(x(point.time)),
                     Coordinate(area.bottom - point.value / top * area.height()));
  }
  return d;
}

// Labels at the ends of lines, from the top down, moved apart.
void DrawEnds(Svg& svg, const TimePlot& plot, const Area& area, double top) {
  std::vector<std::pair<double, const TimeSeries*>> ends;
  for (const TimeSeries& series : plot.series) {
    if (series.points.empty()) continue;
    ends.emplace_back(area.bottom - series.points.back().value / top * area.height(), &series);
  }
  std::ranges::sort(ends);
  const double room = kLabelDistance * static_cast<double>(ends.size());
  double least = area.top;
  for (size_t i = 0; i < ends.size(); ++i) {
    const double most = area.bottom - room + kLabelDistance * static_cast<double>(i + 1);
    const double y = std::max(std::min(ends[i].first, std::max(most, least)), least);
    least = y + kLabelDistance;
    svg.Circle(area.right + 14, y, 4, "dot " + ends[i].second->cls);
    svg.Text(
        area.right + 23, y + 4, Anchor::kStart, "label",
        ends[i].second->name + " " + ShortText(ends[i].second->points.back().value, plot.quantity));
  }
}

// On a narrow page the names are above the plot.
void DrawLegend(Svg& svg, const TimePlot& plot) {
  double x = 6;
  for (const TimeSeries& series : plot.series) {
    svg.Circle(x, 10, 4, "dot " + series.cls);
    svg.Text(x + 9, 14, Anchor::kStart, "label", series.name);
    x += static_cast<double>(series.name.size()) * kCharacter + 30;
  }
}

}  // namespace

std::string Draw(const TimePlot& plot, Layout layout) {
  const bool wide = layout == Layout::kWide;
  double greatest = 0;
  TimeScale x{.first = 1e300, .last = -1e300};
  size_t longest = 0;
  for (const TimeSeries& series : plot.series) {
    for (const TimePoint& point : series.points) {
      greatest = std::max(greatest, point.value);
      x.first = std::min(x.first, point.time);
      x.last = std::max(x.last, point.time);
    }
    if (series.points.empty()) continue;
    longest = std::max(longest, series.name.size() + 1 +
                                    ShortText(series.points.back().value, plot.quantity).size());
  }
  const Axis axis = MakeAxis(greatest, plot.quantity, 4);
  const bool ends = wide && plot.series.size() > 1;
  const bool legend = !wide && plot.series.size() > 1;
  const Area area = {
      .left = RoomFor(axis),
      .top = legend ? 32.0 : 10.0,
      .right = WidthOf(layout) - (ends ? static_cast<double>(longest) * kCharacter + 30 : 14),
      .bottom = plot.height - 26};
  x.left = area.left + 6;
  x.right = area.right;
  Svg svg(plot.name, WidthOf(layout), plot.height, VariantOf(layout));
  DrawAxis(svg, area, axis);
  DrawTimes(svg, x, area.bottom, area.bottom);
  for (const TimeSeries& series : plot.series)
    svg.Path(PathOf(series.points, x, area, axis.top), "line " + series.cls);
  for (const TimeSeries& series : plot.series) {
    const bool marked = series.points.size() <= kMostMarked;
    for (const TimePoint& point : series.points) {
      svg.Circle(x(point.time), area.bottom - point.value / axis.top * area.height(),
                 marked ? 3.5 : 6, (marked ? "dot " : "hit ") + series.cls,
                 fmt::format("{}, {}: {}", series.name, TimeText(point.time),
                             ShortText(point.value, plot.quantity)),
                 fmt::format("data-value=\"{}\"", point.value));
    }
  }
  if (ends) DrawEnds(svg, plot, area, axis.top);
  if (legend) DrawLegend(svg, plot);
  return std::move(svg).Take();
}

std::string Draw(const ScrubPlot& plot, Layout layout) {
  double greatest = 0;
  for (const TimePoint& point : plot.damaged_chunks) greatest = std::max(greatest, point.value);
  const Axis axis = MakeAxis(greatest, Quantity::kCount, 2);
  const double lane = 24;  // of the scrubs
  const Area area = {.left = std::max(RoomFor(axis), 62.0),
                     .top = 56,
                     .right = WidthOf(layout) - 14,
                     .bottom = kScrubHeight - 26};
  const TimeScale x{plot.first, plot.last, area.left + 8, area.right - 8};
  Svg svg(plot.name, WidthOf(layout), kScrubHeight, VariantOf(layout));
  svg.Text(area.left - 8, lane + 4, Anchor::kEnd, "tick", "scrubs");
  svg.Line(area.left, lane, area.right, lane, "grid");
  DrawAxis(svg, area, axis);
  if (greatest == 0)
    svg.Text(area.left + 8, area.bottom - 10, Anchor::kStart, "tick", "no damage known");
  DrawTimes(svg, x, area.bottom, area.bottom);
  // The known damage stays until the next sample.
  std::string d;
  double y = area.bottom;
  for (const TimePoint& point : plot.damaged_chunks) {
    const double at = x(point.time);
    if (d.empty()) {
      d = fmt::format("M{} {}", Coordinate(at), Coordinate(area.bottom));
    } else {
      d += fmt::format("L{} {}", Coordinate(at), Coordinate(y));
    }
    y = area.bottom - point.value / axis.top * area.height();
    d += fmt::format("L{} {}", Coordinate(at), Coordinate(y));
  }
  if (!d.empty()) {
    const double end = x(plot.damaged_chunks.back().time);
    svg.Path(d + fmt::format("L{} {}", Coordinate(end), Coordinate(area.bottom)),
             greatest > 0 ? "damage" : "calm",
             fmt::format("data-value=\"{}\"", plot.damaged_chunks.back().value));
  }
  for (const ScrubMark& scrub : plot.scrubs) {
    if (scrub.damage) {
      svg.Path(
          fmt::format("M{0} {1}l7 7l-7 7l-7 -7z", Coordinate(x(scrub.time)), Coordinate(lane - 7)),
          "bad");
    }
    svg.Circle(x(scrub.time), lane, 6, scrub.damage ? "hit" : "good", scrub.tip,
               fmt::format("data-damage=\"{}\"", scrub.damage ? 1 : 0));
  }
  return std::move(svg).Take();
}

}  // namespace siltfs::report
