// The plots of a report, with fixed values.
#include "tools/report/plots.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tools/report/markup.h"
#include "tools/report/page.h"
#include "tools/report/scale.h"
#include "tools/report/style.h"

namespace siltfs::report {
namespace {

const PlotName kName = {"some-plot", "A title", "What it shows."};

// The values of an attribute, in the order of the markup.
std::vector<std::string> AttributesIn(const std::string& markup, const std::string& attribute) {
  std::vector<std::string> values;
  const std::regex pattern(attribute + "=\"([^\"]*)\"");
  for (std::sregex_iterator at(markup.begin(), markup.end(), pattern), end; at != end; ++at)
    values.push_back((*at)[1]);
  return values;
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool Has(const std::string& text, const std::string& part) { return CountOf(text, part) > 0; }

std::string LabelsOf(const Axis& axis) {
  std::string labels;
  for (const Tick& tick : axis.ticks) labels += (labels.empty() ? "" : " | ") + tick.label;
  return labels;
}

// The relative luminance of "#rrggbb", as WCAG 2 defines it.
double Luminance(const std::string& colour) {
  const auto part = [&](size_t at) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

double Contrast(const std::string& one, const std::string& other) {
  const double a = Luminance(one);
  const double b = Luminance(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

// The colours that the declarations name; "#abc" is "#aabbcc".
std::map<std::string, std::string> ColoursIn(const std::string& declarations) {
  std::map<std::string, std::string> colours;
  const std::regex colour("--([a-z0-9-]+): #([0-9a-f]{3,6});");
  for (std::sregex_iterator at(declarations.begin(), declarations.end(), colour), end; at != end;
       ++at) {
    std::string value = "#";
    const std::string digits = (*at)[2];
    for (const char digit : digits) value += std::string(digits.size() == 3 ? 2 : 1, digit);
    colours[(*at)[1]] = value;
  }
  return colours;
}

TEST_CASE("text can be read on each background: in light, in dark and in print") {
  const std::string style(kStyle);
  const std::regex theme(":root \\{([^}]*)\\}");
  size_t themes = 0;
  for (std::sregex_iterator at(style.begin(), style.end(), theme), end; at != end; ++at, ++themes) {
    const auto colours = ColoursIn((*at)[1]);
    for (const char* text : {"ink", "soft", "faint"}) {
      for (const char* background : {"card", "page", "s1-soft", "s2-soft"}) {
        INFO(themes << ": " << text << " on " << background);
        CHECK(Contrast(colours.at(text), colours.at(background)) >= 4.5);
      }
    }
  }
  CHECK(themes == 3);
}

TEST_CASE("a plot over less than a minute shows its times") {
  constexpr double kStart = 1'700'000'000;  // 2023-11-14 22:13:20
  TimePlot plot{.name = kName, .series = {{.name = "files", .cls = "s1"}}};
  for (const double second : {0.0, 10.0}) plot.series[0].points.push_back({kStart + second, 1.0});
  for (const Layout layout : {Layout::kWide, Layout::kNarrow}) {
    const std::string markup = Draw(plot, layout);
    INFO(markup);
    CHECK(markup.find(">2023-11-14 22:13 UTC</text>") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("an axis of a report has round numbers, and reaches the greatest value") {
  CHECK(LabelsOf(MakeAxis(0, Quantity::kCount, 4)) == "0");
  CHECK(LabelsOf(MakeAxis(1, Quantity::kCount, 4)) == "0 | 1");
  CHECK(LabelsOf(MakeAxis(7, Quantity::kCount, 4)) == "0 | 2 | 4 | 6 | 8");
  CHECK(LabelsOf(MakeAxis(43'000, Quantity::kCount, 4)) == "0 | 20 k | 40 k | 60 k");
  CHECK(LabelsOf(MakeAxis(1000, Quantity::kBytes, 4)) == "0 | 500 B | 1000 B");
  CHECK(LabelsOf(MakeAxis(3.0 * (1 << 30), Quantity::kBytes, 4)) == "0 | 1 GiB | 2 GiB | 3 GiB");
  CHECK(LabelsOf(MakeAxis(0.31, Quantity::kBytesPerEntry, 4)) ==
        "0 | 0.1 B | 0.2 B | 0.3 B | 0.4 B");
  for (const double greatest : {1.0, 9.0, 10.0, 11.0, 12345.0, 1e9, 3e12, 1.8e19}) {
    for (const Quantity quantity : {Quantity::kCount, Quantity::kBytes}) {
      const Axis axis = MakeAxis(greatest, quantity, 4);
      INFO(greatest << ": " << LabelsOf(axis));
      CHECK(axis.top >= greatest * (1 - 1e-9));
      CHECK(axis.top <= greatest * 2.01);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 8);
    }
  }
}

TEST_CASE("times on an axis are round, and few") {
  constexpr double kStart = 1'700'000'000;  // 2023-11-14 22:13:20
  for (const double span :
       {30.0, 3600.0, 86'400.0, 86'400.0 * 7, 86'400.0 * 400, 86'400.0 * 9000}) {
    INFO(span);
    CHECK(TimeTicks(kStart, kStart + span, 6).size() <= 7);
  }
  const auto hours = TimeTicks(kStart, kStart + 6 * 3600, 6);
  REQUIRE(hours.size() == 6);
  CHECK(hours[0].label == "23:00");
  const auto days = TimeTicks(kStart, kStart + 5 * 86'400, 6);
  REQUIRE(days.size() == 5);
  CHECK(days[0].label == "15 Nov");
  CHECK(TimeTicks(kStart, kStart, 6).size() <= 1);
  CHECK(TimeText(kStart) == "2023-11-14 22:13 UTC");
  CHECK(DateText(1e300) != "");  // a damaged record has any number
  CHECK(DateText(-1e300) != "");
}

TEST_CASE("counts are short") {
  CHECK(ShortCount(0) == "0");
  CHECK(ShortCount(999) == "999");
  CHECK(ShortCount(1000) == "1 k");
  CHECK(ShortCount(4123) == "4.1 k");
  CHECK(ShortCount(412'345) == "412 k");
  CHECK(ShortCount(2'500'000) == "2.5 M");
  CHECK(ShortCount(999'999) == "1 M");
}

TEST_CASE("a size beyond all sizes, as a damaged history may have, is shown as the greatest one") {
  CHECK(ShortText(0x1p64, Quantity::kBytes) == "16.0 EiB");
  CHECK(ShortText(-1, Quantity::kBytes) == "0 B");
}

TEST_CASE("text in plots and pages cannot become markup") {
  const std::string hostile = "<script>alert('1')</script>&\"";
  const std::string escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;";
  CHECK(Escape(hostile) == escaped);
  Page page{.title = hostile,
            .heading = hostile,
            .health = hostile,
            .health_class = hostile,
            .meta = {hostile},
            .tiles = {{hostile, hostile, hostile}},
            .sections = {},
            .footer = hostile};
  Section section{
      .id = hostile, .title = hostile, .lead = hostile, .caution = hostile, .empty = hostile};
  section.facts = {{hostile, hostile}};
  section.tables = {{hostile, {hostile}, {{hostile}}}};
  page.sections = {section};
  Section drawn = section;
  IndexDiagram diagram{
      .name = {hostile, hostile, hostile},
      .kinds = {{.kind = hostile, .title = hostile, .entries = 3, .step = hostile}}};
  BarPlot bars{
      .name = {hostile, hostile, hostile}, .x_title = hostile, .bars = {{hostile, 3, hostile}}};
  RowPlot rows{.name = {hostile, hostile, hostile}, .rows = {{hostile, 3, hostile, "s1"}}};
  SegmentMap map{.name = {hostile, hostile, hostile}, .cells = {{0.5, hostile}}};
  TimePlot lines{.name = {hostile, hostile, hostile},
                 .series = {{hostile, "s1", {{1, 2}}}, {hostile, "s2", {{1, 3}}}}};
  ScrubPlot scrubs{
      .name = {hostile, hostile, hostile}, .first = 1, .last = 2, .scrubs = {{1.5, true, hostile}}};
  drawn.figures = {{hostile, DrawBoth(diagram)}, {hostile, DrawBoth(bars)},
                   {hostile, DrawBoth(rows)},    {hostile, DrawBoth(map)},
                   {hostile, DrawBoth(lines)},   {hostile, DrawBoth(scrubs)}};
  page.sections.push_back(drawn);
  const std::string text = Format(page);
  CHECK_FALSE(Has(text, "<script"));
  CHECK_FALSE(Has(text, "alert('1')"));
  CHECK(CountOf(text, escaped) > 60);
}

TEST_CASE("a histogram has a bar for each value, with its exact figure") {
  BarPlot plot{.name = kName,
               .quantity = Quantity::kCount,
               .x_title = "length",
               .bars = {{"1K", 10, "ten"}, {"", 0, ""}, {"4K", 40, "forty"}, {"8K", 1, "one"}},
               .values_above = true};
  const std::string wide = Draw(plot, Layout::kWide);
  INFO(wide);
  CHECK(AttributesIn(wide, "data-value") == std::vector<std::string>{"10", "40", "1"});
  CHECK(AttributesIn(wide, "data-plot") == std::vector<std::string>{"some-plot"});
  CHECK(Has(wide, "role=\"img\""));
  CHECK(Has(wide, "<title id=\"some-plot-wide-t\">A title</title>"));
  CHECK(Has(wide, "<desc id=\"some-plot-wide-d\">What it shows.</desc>"));
  CHECK(Has(wide, "aria-labelledby=\"some-plot-wide-t some-plot-wide-d\""));
  CHECK(Has(wide, "<title>forty</title>"));
  CHECK(Has(wide, ">40</text>"));
  CHECK(Has(wide, ">8K</text>"));
  // 196 pixels for 40 of 40, so 49 for 10.
  const std::regex path("M[0-9.]+ ([0-9.]+)v-([0-9.]+)q");
  std::vector<double> heights;
  for (std::sregex_iterator at(wide.begin(), wide.end(), path), end; at != end; ++at)
    heights.push_back(std::stod((*at)[2]) + 3);
  REQUIRE(heights.size() >= 2);
  CHECK(heights[0] / heights[1] == Approx(10.0 / 40).margin(0.01));
  CHECK(AttributesIn(Draw(plot, Layout::kNarrow), "data-value") ==
        std::vector<std::string>{"10", "40", "1"});
}

TEST_CASE("labels below bars never touch") {
  BarPlot plot{.name = kName, .x_title = "x"};
  for (int i = 0; i < 60; ++i) plot.bars.push_back({"label " + std::to_string(i), 1, "tip"});
  const std::string narrow = Draw(plot, Layout::kNarrow);
  const size_t labels = CountOf(narrow, ">label ");
  CHECK(labels >= 3);
  CHECK(labels <= 7);
}

TEST_CASE("lying bars are as long as their values") {
  RowPlot plot{
      .name = kName,
      .rows = {{"a", 100, "100 B", "s1"}, {"b", 25, "25 B", "s2"}, {"none", 0, "0 B", "s1"}}};
  for (const Layout layout : {Layout::kWide, Layout::kNarrow}) {
    const std::string drawn = Draw(plot, layout);
    INFO(drawn);
    CHECK(AttributesIn(drawn, "data-value") == std::vector<std::string>{"100", "25", "0"});
    const auto widths = AttributesIn(drawn, " width");
    REQUIRE(widths.size() == 3);
    CHECK(std::stod(widths[1]) / std::stod(widths[0]) == Approx(0.25).margin(0.01));
    CHECK(widths[2] == "0");
  }
}

TEST_CASE("a line passes through its points, and a single point is drawn") {
  TimePlot plot{.name = kName,
                .quantity = Quantity::kBytes,
                .series = {{"files", "s1", {{0, 0}, {100, 512}, {200, 1024 * 4}}},
                           {"on disk", "s3", {{0, 0}, {100, 0}, {200, 1024}}}}};
  for (const Layout layout : {Layout::kWide, Layout::kNarrow}) {
    const std::string drawn = Draw(plot, layout);
    INFO(drawn);
    CHECK(AttributesIn(drawn, "data-value") ==
          std::vector<std::string>{"0", "512", "4096", "0", "0", "1024"});
    CHECK(CountOf(drawn, "class=\"line ") == 2);
    CHECK(Has(drawn, ">files"));
    CHECK_FALSE(Has(drawn, "nan"));
  }
  TimePlot single{.name = kName, .series = {{"files", "s1", {{5, 7}}}}};
  const std::string drawn = Draw(single, Layout::kWide);
  CHECK(AttributesIn(drawn, "data-value") == std::vector<std::string>{"7"});
  CHECK_FALSE(Has(drawn, "nan"));
  CHECK_FALSE(Has(drawn, "inf"));
}

TEST_CASE("the map of segments has a cell for each, coloured by its use") {
  SegmentMap map{
      .name = kName,
      .cells = {{0, "a"}, {0.001, "b"}, {0.5, "c"}, {0.999, "d"}, {1, "e"}, {std::nullopt, "f"}}};
  const std::string drawn = Draw(map, Layout::kWide);
  INFO(drawn);
  CHECK(AttributesIn(drawn, "data-value") ==
        std::vector<std::string>{"0.0000", "0.0010", "0.5000", "0.9990", "1.0000", ""});
  const auto classes = AttributesIn(drawn, "class");
  REQUIRE(classes.size() > 6);
  CHECK(std::vector<std::string>(classes.begin(), classes.begin() + 6) ==
        std::vector<std::string>{"cell l0", "cell l1", "cell l5", "cell l9", "cell l10",
                                 "cell unknown"});
  // Any number of cells stays in the frame.
  SegmentMap large{.name = kName, .cells = std::vector<MapCell>(1200, MapCell{1.0, "x"})};
  for (const Layout layout : {Layout::kWide, Layout::kNarrow}) {
    const double width = layout == Layout::kWide ? 720 : 340;
    for (const std::string& x : AttributesIn(Draw(large, layout), " x"))
      CHECK(std::stod(x) <= width - 8);
  }
}

TEST_CASE(
    "the diagram of the index has memory and flash of each kind, and the steps between them") {
  IndexDiagram diagram{.name = kName,
                       .kinds = {{.kind = "sorted_store",
                                  .title = "SortedStore",
                                  .count = 64,
                                  .entries = 1'000'000,
                                  .memory_bytes = 250'000,
                                  .flash_bytes = 20'000'000,
                                  .step = ""},
                                 {.kind = "log_store",
                                  .title = "LogStore",
                                  .count = 1,
                                  .entries = 1000,
                                  .memory_bytes = 6500,
                                  .flash_bytes = 32'000,
                                  .step = "merge"}}};
  for (const Layout layout : {Layout::kWide, Layout::kNarrow}) {
    const std::string drawn = Draw(diagram, layout);
    INFO(drawn);
    CHECK(AttributesIn(drawn, "data-value") == std::vector<std::string>{"1000000", "1000"});
    CHECK(AttributesIn(drawn, "data-memory") == std::vector<std::string>{"250000", "6500"});
    CHECK(AttributesIn(drawn, "data-flash") == std::vector<std::string>{"20000000", "32000"});
    CHECK(Has(drawn, "64 × SortedStore"));
    CHECK(Has(drawn, ">LogStore<"));
    CHECK(Has(drawn, "1,000,000 entries"));
    CHECK(Has(drawn, "0.25 B an entry"));
    CHECK(CountOf(drawn, "class=\"arrow\"") == 1);
    CHECK(Has(drawn, ">merge<"));
  }
}

TEST_CASE("scrubs and known damage are marked over time") {
  ScrubPlot plot{.name = kName,
                 .first = 0,
                 .last = 1000,
                 .scrubs = {{100, false, "fine"}, {500, true, "bad"}},
                 .damaged_chunks = {{0, 0}, {500, 3}, {1000, 2}}};
  const std::string drawn = Draw(plot, Layout::kWide);
  INFO(drawn);
  CHECK(AttributesIn(drawn, "data-damage") == std::vector<std::string>{"0", "1"});
  CHECK(AttributesIn(drawn, "data-value") == std::vector<std::string>{"2"});
  CHECK(Has(drawn, "<title>fine</title>"));
  CHECK_FALSE(Has(drawn, "no damage known"));
  plot.damaged_chunks = {{0, 0}, {1000, 0}};
  CHECK(Has(Draw(plot, Layout::kNarrow), "no damage known"));
}

TEST_CASE("a page loads nothing, runs nothing, and fits phones, dark screens and paper") {
  const std::string page = Format({.title = "t", .heading = "h"});
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(Has(page, "default-src 'none'"));
  CHECK(Has(page, "name=\"viewport\""));
  CHECK(Has(page, "@media (prefers-color-scheme: dark)"));
  CHECK(Has(page, "@media print"));
  CHECK(Has(page, "@media screen and (max-width: 600px)"));
  for (const char* part : {"http://", "https://", "<script", "url(", "@import", "<link", "<img"}) {
    INFO(part);
    CHECK_FALSE(Has(page, part));
  }
}

}  // namespace siltfs::report
