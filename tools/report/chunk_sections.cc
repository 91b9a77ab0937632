// Sections about chunks and segments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "store/base/size_text.h"
#include "tools/report/plots.h"
#include "tools/report/sections.h"

namespace siltfs::report {
namespace {

// At most this share of the chunks is joined into the first bar, so that a few short chunks (the
// ends of files) do not take half of the plot.
constexpr double kShareOfFirstBar = 0.02;

struct Class {
  uint64_t from = 0;
  uint64_t to = 0;  // exclusive
  uint64_t chunks = 0;
  uint64_t bytes = 0;
};

std::vector<Class> ClassesOf(const Json& list, uint64_t scale) {
  std::vector<Class> classes;
  for (const Json& one : list) {
    classes.push_back({Number(one, "from"), Number(one, "to"), Number(one, "chunks") * scale,
                       Number(one, "bytes") * scale});
  }
  return classes;
}

uint64_t ChunksOf(const std::vector<Class>& classes) {
  uint64_t chunks = 0;
  for (const Class& one : classes) chunks += one.chunks;
  return chunks;
}

std::string SampleNote(uint64_t scale) {
  if (scale == 1) return "";
  return fmt::format(
      "The store is large, so one chunk in {} was examined. The numbers of chunks, bytes and "
      "references are estimates: those of the sample times {}.",
      FormatCount(scale), FormatCount(scale));
}

std::string LengthText(uint64_t length) {
  return length % 1024 == 0 && length > 0 ? FormatSizeArgument(length)
                                          : fmt::format("{} B", FormatCount(length));
}

bool IsPowerOfTwo(uint64_t number) { return number > 0 && (number & (number - 1)) == 0; }

// The class behind a class of lengths: four for each power of two.
uint64_t NextEdge(uint64_t edge) {
  uint64_t power = 4;
  while (power * 2 <= edge) power *= 2;
  return edge < 4 ? edge + 1 : edge + power / 4;
}

// Joins the shortest classes, up to a power of two, into one.
std::vector<Class> WithFirstJoined(std::vector<Class> classes) {
  const double most = static_cast<double>(ChunksOf(classes)) * kShareOfFirstBar;
  Class first = classes.front();
  size_t joined = 1;
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    chunks += classes[i].chunks;
    bytes += classes[i].bytes;
    if (static_cast<double>(chunks) > most) break;
    // The next class begins behind the power of two.
    uint64_t power = 1;
    while (power < classes[i].to) power *= 2;
    if (i + 1 < classes.size() && classes[i + 1].from >= power) {
      joined = i + 1;
      first = {0, power, chunks, bytes};
    }
  }
  if (joined == 1) return classes;
  classes.erase(classes.begin(), classes.begin() + static_cast<ptrdiff_t>(joined));
  classes.insert(classes.begin(), first);
  return classes;
}

std::string LengthTip(const Class& one, uint64_t all) {
  return fmt::format("{} to {}: {} chunks ({}), {}", LengthText(one.from), LengthText(one.to),
                     FormatCount(one.chunks),
                     PercentText(static_cast<double>(one.chunks), static_cast<double>(all)),
                     FormatSize(one.bytes));
}

// One bar for each class from the first to the last, also for empty ones.
std::vector<Bar> LengthBars(const std::vector<Class>& classes) {
  const uint64_t all = ChunksOf(classes);
  std::vector<Bar> bars;
  uint64_t edge = classes.front().from;
  for (const Class& one : classes) {
    for (; edge < one.from; edge = NextEdge(edge))
      bars.push_back({IsPowerOfTwo(edge) ? LengthText(edge) : "", 0, ""});
    const bool labelled = IsPowerOfTwo(one.from);
    bars.push_back({labelled ? LengthText(one.from) : "", one.chunks, LengthTip(one, all)});
    edge = one.to;
  }
  return bars;
}

const Class& MedianOf(const std::vector<Class>& classes) {
  const uint64_t half = (ChunksOf(classes) + 1) / 2;
  uint64_t chunks = 0;
  for (const Class& one : classes) {
    chunks += one.chunks;
    if (chunks >= half) return one;
  }
  return classes.back();
}

std::string ReferencesText(const Class& one) {
  return one.to - one.from == 1 ? FormatCount(one.from)
                                : fmt::format("{}–{}", one.from, one.to - 1);
}

Table TableOf(const std::vector<Class>& classes, std::string head,
              std::string (*text)(const Class&)) {
  Table table{
      .title = "All values", .heads = {std::move(head), "chunks", "share", "bytes"}, .rows = {}};
  const auto all = static_cast<double>(ChunksOf(classes));
  for (const Class& one : classes) {
    table.rows.push_back({text(one), FormatCount(one.chunks),
                          PercentText(static_cast<double>(one.chunks), all),
                          FormatSize(one.bytes)});
  }
  return table;
}

std::string MapTip(const Json& cell) {
  const uint64_t count = Number(cell, "segments");
  const uint64_t first = Number(cell, "first");
  std::string tip = count == 1
                        ? fmt::format("segment {}", first)
                        : fmt::format("{} segments, {} to {}", count, first, Number(cell, "last"));
  tip += fmt::format(": {}, {} chunks, ", FormatSize(Number(cell, "bytes")),
                     FormatCount(Number(cell, "chunks")));
  tip += cell.at("live").is_null() ? "use not known"
                                   : PercentText(cell.at("live").get<double>(), 1) + " in use";
  if (Number(cell, "nodes") == count) tip += ", recipe nodes";
  if (Number(cell, "open") > 0) tip += ", still open";
  return tip;
}

}  // namespace

Section LengthsSection(const Json& survey) {
  const uint64_t scale = Number(survey, "scale");
  Section section{.id = "chunk-sizes",
                  .title = "Chunk sizes",
                  .lead =
                      "Files are cut where their content says. Each distinct chunk of the "
                      "present files counts once, by its uncompressed length.",
                  .caution = SampleNote(scale),
                  .empty = "No file has content yet."};
  const std::vector<Class> classes = ClassesOf(survey.at("lengths"), scale);
  const uint64_t chunks = Number(survey.at("files"), "chunks") * scale;
  const uint64_t bytes = Number(survey.at("files"), "bytes") * scale;
  section.facts = {{"Distinct chunks", FormatCount(chunks)}, {"Their bytes", FormatSize(bytes)}};
  if (classes.empty()) return section;
  const std::string mean = FormatSize(bytes / std::max<uint64_t>(chunks, 1));
  const Class& median = MedianOf(classes);
  BarPlot plot{
      .name = {"chunk-sizes", "Chunk sizes",
               fmt::format("{} distinct chunks with a mean of {}.", FormatCount(chunks), mean)},
      .quantity = Quantity::kCount,
      .x_title = "length of the chunk",
      .bars = LengthBars(WithFirstJoined(classes)),
      .labels_at_edges = true};
  section.figures = {{"Number of chunks", DrawBoth(plot)}};
  section.facts.push_back({"Mean length", mean});
  section.facts.push_back(
      {"Median", fmt::format("{} to {}", LengthText(median.from), LengthText(median.to))});
  section.facts.push_back({"Shortest, at least", LengthText(classes.front().from)});
  section.facts.push_back({"Longest, below", LengthText(classes.back().to)});
  section.tables = {
      TableOf(classes, "length from", [](const Class& one) { return LengthText(one.from); })};
  return section;
}

Section SharingSection(const Json& stats, const Json& survey) {
  const uint64_t scale = Number(survey, "scale");
  Section section{.id = "sharing",
                  .title = "How often chunks are shared",
                  .lead =
                      "The number of places in present files that refer to a chunk. A chunk "
                      "with many references is stored once all the same.",
                  .caution = SampleNote(scale),
                  .empty = "No file has content yet."};
  const std::vector<Class> classes = ClassesOf(survey.at("shared"), scale);
  const uint64_t chunks = Number(survey.at("files"), "chunks") * scale;
  const uint64_t references = Number(survey, "references") * scale;
  BarPlot plot{.name = {"sharing", "References to a chunk", ""},
               .quantity = Quantity::kCount,
               .x_title = "references to the chunk",
               .values_above = true};
  uint64_t once = 0;
  for (const Class& one : classes) {
    if (one.from == 1) once = one.chunks;
    plot.bars.push_back(
        {ReferencesText(one), one.chunks,
         fmt::format("{} references: {} chunks ({}), {}", ReferencesText(one),
                     FormatCount(one.chunks),
                     PercentText(static_cast<double>(one.chunks), static_cast<double>(chunks)),
                     FormatSize(one.bytes))});
  }
  plot.name.description = fmt::format("Of {} distinct chunks, {} have one reference.",
                                      FormatCount(chunks), FormatCount(once));
  if (!classes.empty()) section.figures = {{"Number of chunks", DrawBoth(plot)}};
  const double mean =
      chunks == 0 ? 0 : static_cast<double>(references) / static_cast<double>(chunks);
  section.facts = {
      {"References", FormatCount(references)},
      {"Distinct chunks", FormatCount(chunks)},
      {"References a chunk", fmt::format("{:.2f}", mean)},
      {"Used once", PercentText(static_cast<double>(once), static_cast<double>(chunks))},
      {"Saved by sharing",
       FormatSize(Number(stats, "logical_bytes") -
                  std::min(Number(stats, "logical_bytes"), Number(stats, "unique_bytes")))},
      {"Only in snapshots", FormatCount(Number(survey.at("snapshots"), "chunks") * scale)},
      {"Recipe nodes", FormatCount(Number(survey.at("nodes"), "chunks") * scale)}};
  if (!classes.empty()) section.tables = {TableOf(classes, "references", ReferencesText)};
  return section;
}

Section SegmentsSection(const Json& survey) {
  const Json& segments = survey.at("segments");
  const uint64_t per_cell = Number(segments, "per_cell");
  Section section{
      .id = "segments",
      .title = "Segments",
      .lead =
          per_cell == 1
              ? "Each square is a segment of the log, the oldest first. Garbage collection "
                "empties segments with little in use, and keeps full ones."
              : fmt::format("Each square is {} segments of the log, the oldest first. Garbage "
                            "collection empties segments with little in use, and keeps full ones.",
                            FormatCount(per_cell)),
      .empty = "The store has no segment yet."};
  const uint64_t missing = Number(survey, "not_indexed") * Number(survey, "scale");
  if (missing > 0) {
    section.caution = fmt::format(
        "The index lacks {} chunks that are in use, so their segments look emptier than they are. "
        "A mount completes the index.",
        FormatCount(missing));
  } else if (Number(survey, "scale") > 1) {
    section.caution = SampleNote(Number(survey, "scale"));
  }
  SegmentMap map;
  std::array<uint64_t, 4> classes{};  // nothing, below half, half and more, all
  uint64_t nodes = 0;
  for (const Json& cell : segments.at("cells")) {
    std::optional<double> live;
    if (!cell.at("live").is_null()) live = cell.at("live").get<double>();
    map.cells.push_back({live, MapTip(cell)});
    nodes += Number(cell, "nodes");
    if (!live) continue;
    const size_t place = *live <= 0 ? 0 : *live < 0.5 ? 1 : *live < 1 ? 2 : 3;
    classes[place] += Number(cell, "segments");
  }
  const auto bytes = static_cast<double>(Number(segments, "bytes"));
  const Json& live_bytes = segments.at("live_bytes");
  const std::string in_use =
      live_bytes.is_null() ? "not known" : PercentText(live_bytes.get<double>(), bytes);
  map.name = {"segments", "Map of segments",
              fmt::format("{} segments with {}, of which {} are in use.",
                          FormatCount(Number(segments, "count")),
                          FormatSize(Number(segments, "bytes")), in_use)};
  if (!map.cells.empty()) section.figures = {{"", DrawBoth(map)}};
  section.facts = {{"Segments", FormatCount(Number(segments, "count"))},
                   {"Their bytes", FormatSize(Number(segments, "bytes"))},
                   {"In use", in_use},
                   {"Wholly in use", FormatCount(classes[3])},
                   {"Half or more", FormatCount(classes[2])},
                   {"Less than half", FormatCount(classes[1])},
                   {"Nothing in use", FormatCount(classes[0])},
                   {"With recipe nodes", FormatCount(nodes)}};
  return section;
}

}  // namespace siltfs::report
