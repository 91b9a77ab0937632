// The plots of a report: each function draws one plot in one of two layouts, for wide and for
// narrow pages. The style sheet shows the layout that fits.
//
// Every shape that stands for a figure has the exact figure in the attribute data-value, so that
// programs can read and check a page.
//
// Thread-safety: pure functions, and plain values. Units: as the plot says; times in seconds since
// 1970, UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/scale.h"

namespace siltfs::report {

enum class Layout { kWide, kNarrow };

// --- Upright bars: a histogram

struct Bar {
  std::string label = {};  // below the bar; left out where there is no room
  uint64_t value = 0;
  std::string tip = {};
};
struct BarPlot {
  PlotName name = {};
  Quantity quantity = Quantity::kCount;
  std::string x_title = {};
  std::vector<Bar> bars = {};
  bool values_above = false;     // the value is written above each bar
  bool labels_at_edges = false;  // a label means the left edge of its bar
};
std::string Draw(const BarPlot& plot, Layout layout);

// --- Lying bars: a few amounts with names

struct Row {
  std::string label = {};
  double value = 0;
  std::string text = {};  // behind the bar
  std::string cls = "s1";
};
struct RowPlot {
  PlotName name = {};
  std::vector<Row> rows = {};
};
std::string Draw(const RowPlot& plot, Layout layout);

// --- Lines over time

struct TimePoint {
  double time = 0;
  double value = 0;
};
struct TimeSeries {
  std::string name = {};
  std::string cls = {};  // s1, s2, s3
  std::vector<TimePoint> points = {};
};
struct TimePlot {
  PlotName name = {};
  Quantity quantity = Quantity::kBytes;
  std::vector<TimeSeries> series = {};  // with the same times
  double height = 260;
};
std::string Draw(const TimePlot& plot, Layout layout);

// --- The map of segments

struct MapCell {
  std::optional<double> live = {};  // share, 0 to 1
  std::string tip = {};
};
struct SegmentMap {
  PlotName name = {};
  std::vector<MapCell> cells = {};
};
std::string Draw(const SegmentMap& map, Layout layout);

// --- The index's stores, as in figure 2 of the SILT paper: what each kind of store has in memory
// and on flash

struct IndexKind {
  std::string kind = {};   // the engine's word
  std::string title = {};  // "SortedStore"
  uint64_t count = 0;
  uint64_t entries = 0;
  uint64_t memory_bytes = 0;
  uint64_t flash_bytes = 0;
  std::string step = {};  // written at the arrow to the kind before; empty: no arrow
};
struct IndexDiagram {
  PlotName name = {};
  std::vector<IndexKind> kinds = {};  // the oldest entries first, as in the paper
};
std::string Draw(const IndexDiagram& diagram, Layout layout);

// --- Scrubs, and known damage, over time

struct ScrubMark {
  double time = 0;
  bool damage = false;
  std::string tip = {};
};
struct ScrubPlot {
  PlotName name = {};
  double first = 0;
  double last = 0;
  std::vector<ScrubMark> scrubs = {};
  std::vector<TimePoint> damaged_chunks = {};
};
std::string Draw(const ScrubPlot& plot, Layout layout);

// Both layouts, as the style sheet expects them.
template <typename Plot>
std::string DrawBoth(const Plot& plot) {
  return "<div class=\"wide\">" + Draw(plot, Layout::kWide) + "</div><div class=\"narrow\">" +
         Draw(plot, Layout::kNarrow) + "</div>\n";
}

}  // namespace siltfs::report
