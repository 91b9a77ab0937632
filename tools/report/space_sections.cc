// Sections about space: what the files take, and how it has developed.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "store/base/size_text.h"
#include "tools/report/plots.h"
#include "tools/report/sections.h"

namespace siltfs::report {
namespace {

std::string Size(const Json& object, const char* key) { return FormatSize(Number(object, key)); }

uint64_t LiveStored(const Json& stats) {
  const uint64_t stored = Number(stats, "stored_bytes");
  return stored - std::min(stored, Number(stats, "dead_bytes"));
}

Row SizeRow(std::string label, uint64_t bytes, std::string cls) {
  return {std::move(label), static_cast<double>(bytes), FormatSize(bytes), std::move(cls)};
}

// The samples of the history, and the statistics of now as the last one.
std::vector<Json> SamplesOf(const Json& stats, const Json& survey, double now) {
  std::vector<Json> samples;
  for (const Json& sample : survey.at("sizes")) {
    if (sample.at("taken_at").get<double>() < now) samples.push_back(sample);
  }
  samples.push_back(stats);
  samples.back()["taken_at"] = now;
  return samples;
}

double RatioOf(const Json& sample) {
  const auto disk = static_cast<double>(DiskBytes(sample));
  const auto logical = static_cast<double>(Number(sample, "logical_bytes"));
  return disk == 0 || logical == 0 ? 1 : logical / disk;
}

}  // namespace

std::string RatioText(double ratio) { return fmt::format("{:.2f} : 1", ratio); }

std::string PercentText(double part, double whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100 * part / whole);
}

Section SpaceSection(const Json& stats) {
  RowPlot plot;
  plot.rows = {SizeRow("files", Number(stats, "logical_bytes"), "s1"),
               SizeRow("after deduplication", Number(stats, "unique_bytes"), "s1"),
               SizeRow("after compression", LiveStored(stats), "s1"),
               SizeRow("on disk in all", DiskBytes(stats), "s2")};
  plot.name = {"space", "Space",
               fmt::format("Files hold {}. They are {} after deduplication, and take {} on disk.",
                           plot.rows[0].text, plot.rows[1].text, plot.rows[3].text)};
  Section section{.id = "space",
                  .title = "Space",
                  .lead =
                      "What the files hold, and what is left of it after each step. The last "
                      "bar adds dead data, metadata and the index."};
  section.figures = {{"", DrawBoth(plot)}};
  section.facts = {{"Deduplication", RatioText(stats.at("dedup_ratio").get<double>())},
                   {"Compression", RatioText(stats.at("compression_ratio").get<double>())},
                   {"In all", RatioText(stats.at("total_ratio").get<double>())},
                   {"Dead data", Size(stats, "dead_bytes")},
                   {"Metadata", Size(stats, "metadata_bytes")},
                   {"Index", Size(stats, "index_bytes")},
                   {"Reserve, besides", Size(stats, "reserve_bytes")}};
  return section;
}

Section HistorySection(const Json& stats, const Json& survey, double now) {
  const std::vector<Json> samples = SamplesOf(stats, survey, now);
  TimeSeries logical{"files", "s1", {}};
  TimeSeries unique{"unique", "s2", {}};
  TimeSeries disk{"on disk", "s3", {}};
  TimeSeries ratio{"savings", "s1", {}};
  Table table{.title = "All samples",
              .heads = {"time", "files", "unique", "on disk", "in all", "chunks", "damaged"},
              .rows = {}};
  for (const Json& sample : samples) {
    const double time = sample.at("taken_at").get<double>();
    const auto number = [&](const char* key) { return static_cast<double>(Number(sample, key)); };
    logical.points.push_back({time, number("logical_bytes")});
    unique.points.push_back({time, number("unique_bytes")});
    disk.points.push_back({time, static_cast<double>(DiskBytes(sample))});
    ratio.points.push_back({time, RatioOf(sample)});
    table.rows.push_back({TimeText(time), Size(sample, "logical_bytes"),
                          Size(sample, "unique_bytes"), FormatSize(DiskBytes(sample)),
                          RatioText(RatioOf(sample)), FormatCount(Number(sample, "chunks_unique")),
                          FormatCount(Number(sample, "damaged_chunks"))});
  }
  const std::string period =
      fmt::format("{} to {}", DateText(samples.front().at("taken_at").get<double>()),
                  DateText(samples.back().at("taken_at").get<double>()));
  TimePlot sizes{.name = {"history", "Sizes over time",
                          fmt::format("{} samples, {}. At the end files hold {}, and {} on disk.",
                                      samples.size(), period, Size(stats, "logical_bytes"),
                                      FormatSize(DiskBytes(stats)))},
                 .quantity = Quantity::kBytes,
                 .series = {logical, unique, disk}};
  TimePlot ratios{.name = {"ratio", "Savings over time",
                           fmt::format("Size of the files for each byte on disk. At the end {}.",
                                       RatioText(RatioOf(samples.back())))},
                  .quantity = Quantity::kCount,
                  .series = {ratio},
                  .height = 150};
  Section section{.id = "history",
                  .title = "Savings over time",
                  .lead =
                      "A sample is kept at each unmount, and once a day during a mount. Old "
                      "samples become sparse."};
  section.figures = {{"", DrawBoth(sizes)},
                     {"Bytes of files for each byte on disk", DrawBoth(ratios)}};
  section.facts = {{"Samples", FormatCount(samples.size())},
                   {"First", DateText(samples.front().at("taken_at").get<double>())},
                   {"Files then", Size(samples.front(), "logical_bytes")},
                   {"Files now", Size(stats, "logical_bytes")},
                   {"On disk then", FormatSize(DiskBytes(samples.front()))},
                   {"On disk now", FormatSize(DiskBytes(stats))}};
  section.tables = {std::move(table)};
  return section;
}

}  // namespace siltfs::report
