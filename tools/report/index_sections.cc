// Sections about the index of chunks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "store/base/size_text.h"
#include "tools/report/plots.h"
#include "tools/report/sections.h"

namespace siltfs::report {
namespace {

// The kinds of SILT's stores, the oldest entries first, as in figure 2 of the paper.
struct KnownKind {
  std::string_view kind;
  std::string_view title;
  std::string_view step;  // from the next kind to this one
};
constexpr std::array kSiltKinds = {
    KnownKind{"sorted_store", "SortedStore", "merge"},
    KnownKind{"run_store", "RunStore", "conversion"},
    KnownKind{"hash_store", "HashStore", "conversion"},
    KnownKind{"log_store", "LogStore", ""},
};

// Another engine's word, for people: "recent pages".
std::string TitleOf(std::string kind) {
  std::ranges::replace(kind, '_', ' ');
  return kind;
}

IndexKind KindOf(const Json& kind, std::string title) {
  return {.kind = kind.at("kind").get<std::string>(),
          .title = std::move(title),
          .count = Number(kind, "count"),
          .entries = Number(kind, "entries"),
          .memory_bytes = Number(kind, "memory_bytes"),
          .flash_bytes = Number(kind, "flash_bytes"),
          .step = ""};
}

std::vector<IndexKind> KindsOf(const Json& index) {
  std::vector<IndexKind> kinds;
  const Json& given = index.at("kinds");
  std::string_view step;
  for (const KnownKind& known : kSiltKinds) {
    for (const Json& kind : given) {
      if (kind.at("kind") != known.kind) continue;
      kinds.push_back(KindOf(kind, std::string(known.title)));
      kinds.back().step = step;
      step = known.step;
    }
  }
  for (const Json& kind : given) {
    const auto name = kind.at("kind").get<std::string>();
    if (std::ranges::find(kSiltKinds, name, &KnownKind::kind) == kSiltKinds.end())
      kinds.push_back(KindOf(kind, TitleOf(name)));
  }
  return kinds;
}

double PerEntry(uint64_t bytes, uint64_t entries) {
  return entries == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(entries);
}

std::string BytesText(double bytes) { return fmt::format("{:.2f} B", bytes); }

}  // namespace

Section IndexSection(const Json& index) {
  const auto engine = index.at("engine").get<std::string>();
  Section section{
      .id = "index",
      .title = "The index",
      .lead = engine == "silt"
                  ? "New entries go to a LogStore, become sorted runs, and are merged into the "
                    "SortedStore, as in figure 2 of the SILT paper. A lookup asks them from right "
                    "to left."
                  : "The parts of the index, and what each has in memory and on flash.",
      .empty = "The index is missing. The next mount builds it again."};
  IndexDiagram diagram{.name = {}, .kinds = KindsOf(index)};
  diagram.name = {
      "index", "Stores of the index",
      fmt::format("{} entries in {} of memory and {} of flash.",
                  FormatCount(Number(index, "entries")), FormatSize(Number(index, "memory_bytes")),
                  FormatSize(Number(index, "flash_bytes")))};
  if (!diagram.kinds.empty()) section.figures = {{"", DrawBoth(diagram)}};
  section.facts = {
      {"Engine", engine},
      {"Entries", FormatCount(Number(index, "entries"))},
      {"On flash", FormatSize(Number(index, "flash_bytes"))},
      {"Lookups", FormatCount(Number(index, "lookups"))},
      {"Reads a lookup", fmt::format("{:.3f}", index.at("read_amplification").get<double>())},
      {"Written a byte put", fmt::format("{:.2f}", index.at("write_amplification").get<double>())},
      {"Conversions", FormatCount(Number(index, "conversions"))},
      {"Merges", FormatCount(Number(index, "merges"))}};
  Table table{
      .title = "All values",
      .heads = {"kind", "stores", "entries", "memory", "flash", "occupied", "probes", "reads"},
      .rows = {}};
  for (const Json& kind : index.at("kinds")) {
    table.rows.push_back(
        {TitleOf(kind.at("kind").get<std::string>()), FormatCount(Number(kind, "count")),
         FormatCount(Number(kind, "entries")), FormatSize(Number(kind, "memory_bytes")),
         FormatSize(Number(kind, "flash_bytes")),
         PercentText(kind.at("occupancy").get<double>(), 1), FormatCount(Number(kind, "probes")),
         FormatCount(Number(kind, "flash_reads"))});
  }
  if (!diagram.kinds.empty()) section.tables = {std::move(table)};
  return section;
}

Section MemorySection(const Json& index, const Json& survey, double now) {
  const double all = PerEntry(Number(index, "memory_bytes"), Number(index, "entries"));
  Section section{.id = "memory",
                  .title = "Memory for each entry",
                  .lead =
                      "The index keeps a fraction of a byte in memory for most chunks; the "
                      "entries themselves are on flash.",
                  .empty = "The index has no entry yet."};
  section.facts = {{"Memory in all", FormatSize(Number(index, "memory_bytes"))},
                   {"Entries", FormatCount(Number(index, "entries"))},
                   {"Memory an entry", BytesText(all)}};
  if (Number(index, "entries") == 0) return section;
  RowPlot plot{
      .name = {"memory", "Memory for each entry",
               fmt::format("{} bytes of memory for each of {} entries.", fmt::format("{:.2f}", all),
                           FormatCount(Number(index, "entries")))},
      .rows = {}};
  for (const IndexKind& kind : KindsOf(index)) {
    if (kind.entries == 0) continue;
    const double bytes = PerEntry(kind.memory_bytes, kind.entries);
    plot.rows.push_back({kind.title, bytes, BytesText(bytes), "s1"});
  }
  plot.rows.push_back({"all", all, BytesText(all), "s2"});
  section.figures = {{"Bytes of memory for each entry, by kind of store", DrawBoth(plot)}};
  TimeSeries series{"memory an entry", "s2", {}};
  for (const Json& sample : survey.at("sizes")) {
    const double time = sample.at("taken_at").get<double>();
    const uint64_t entries = Number(sample, "index_entries");
    if (entries == 0 || time >= now) continue;
    series.points.push_back({time, PerEntry(Number(sample, "index_memory_bytes"), entries)});
  }
  series.points.push_back({now, all});
  if (series.points.size() > 1) {
    TimePlot history{
        .name = {"memory-history", "Memory for each entry over time",
                 fmt::format("{} samples. At the end {}.", series.points.size(), BytesText(all))},
        .quantity = Quantity::kBytesPerEntry,
        .series = {series},
        .height = 150};
    section.figures.push_back({"Bytes of memory for each entry, over time", DrawBoth(history)});
  }
  return section;
}

}  // namespace siltfs::report
