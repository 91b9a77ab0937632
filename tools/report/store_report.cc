#include "tools/report/store_report.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "store/base/size_text.h"
#include "tools/report/page.h"
#include "tools/report/scale.h"
#include "tools/report/sections.h"

namespace siltfs::report {
namespace {

std::vector<Tile> TilesOf(const Json& stats, const Json& index) {
  const uint64_t disk = DiskBytes(stats);
  const uint64_t logical = Number(stats, "logical_bytes");
  const uint64_t damaged = Number(stats, "damaged_chunks");
  return {
      {"Savings", RatioText(stats.at("total_ratio").get<double>()),
       logical > disk ? FormatSize(logical - disk) + " saved" : "nothing saved yet"},
      {"Files", FormatSize(logical), FormatCount(Number(stats, "files")) + " files"},
      {"On disk", FormatSize(disk), FormatSize(Number(stats, "dead_bytes")) + " of it dead"},
      {"Index memory", FormatSize(Number(index, "memory_bytes")),
       fmt::format("{:.2f} B for each chunk", index.at("memory_bytes_per_entry").get<double>())},
      {"Damage", damaged == 0 ? "none" : FormatCount(damaged),
       damaged == 0 ? "that is known" : "damaged chunks"}};
}

std::vector<std::string> MetaOf(const Json& stats, const Circumstances& circumstances) {
  std::vector<std::string> meta;
  if (!stats.at("mountpoint").is_null())
    meta.push_back("mounted on " + stats.at("mountpoint").get<std::string>());
  meta.push_back(TimeText(circumstances.made_at));
  meta.push_back("store made " + DateText(stats.at("created_at").get<double>()));
  return meta;
}

std::string HealthClass(const std::string& health) {
  if (health == "ok") return "ok";
  return health == "rebuilding" ? "warn" : "bad";
}

}  // namespace

std::string MakeStoreReport(const Json& document, const Circumstances& circumstances) {
  const Json& stats = document.at("stats");
  const Json& index = document.at("index");
  const Json& survey = document.at("survey");
  const double now = circumstances.made_at;
  const auto store = stats.at("store").get<std::string>();
  Page page{.title = fmt::format("siltfs report: {}", store),
            .heading = store,
            .health = circumstances.health,
            .health_class = HealthClass(circumstances.health),
            .meta = MetaOf(stats, circumstances),
            .tiles = TilesOf(stats, index)};
  page.sections = {SpaceSection(stats),
                   HistorySection(stats, survey, now),
                   LengthsSection(survey),
                   SharingSection(stats, survey),
                   SegmentsSection(survey),
                   IndexSection(index),
                   MemorySection(index, survey, now),
                   DamageSection(stats, survey, now)};
  page.footer = fmt::format("Made by siltfs {} on {}. Sizes are powers of 1024.",
                            circumstances.version, TimeText(now));
  return Format(page);
}

}  // namespace siltfs::report
