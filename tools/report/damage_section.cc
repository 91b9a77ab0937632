// The section about damage and scrubs.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "store/base/size_text.h"
#include "tools/report/plots.h"
#include "tools/report/sections.h"

namespace siltfs::report {
namespace {

bool FoundDamage(const Json& scrub) {
  return Number(scrub, "damaged_chunks") + Number(scrub, "damaged_blocks") +
             Number(scrub, "damaged_footers") >
         0;
}

std::string FoundText(const Json& scrub) {
  if (!FoundDamage(scrub)) return "nothing is damaged";
  return fmt::format("{} damaged chunks, {} damaged footers",
                     FormatCount(Number(scrub, "damaged_chunks")),
                     FormatCount(Number(scrub, "damaged_footers")));
}

}  // namespace

Section DamageSection(const Json& stats, const Json& survey, double now) {
  const Json& scrubs = survey.at("scrubs");
  ScrubPlot plot{.name = {"scrubs", "Scrubs and damage", ""},
                 .first = stats.at("created_at").get<double>(),
                 .last = now,
                 .scrubs = {},
                 .damaged_chunks = {}};
  uint64_t with_damage = 0;
  Table table{.title = "All scrubs",
              .heads = {"ended", "chunks", "read", "damaged chunks", "damaged footers"},
              .rows = {}};
  for (const Json& scrub : scrubs) {
    const double ended = scrub.at("ended_at").get<double>();
    plot.first = std::min(plot.first, ended);
    plot.scrubs.push_back(
        {ended, FoundDamage(scrub), fmt::format("{}: {}", TimeText(ended), FoundText(scrub))});
    if (FoundDamage(scrub)) ++with_damage;
    table.rows.push_back({TimeText(ended), FormatCount(Number(scrub, "chunks")),
                          FormatSize(Number(scrub, "bytes")),
                          FormatCount(Number(scrub, "damaged_chunks")),
                          FormatCount(Number(scrub, "damaged_footers"))});
  }
  for (const Json& sample : survey.at("sizes")) {
    const double time = sample.at("taken_at").get<double>();
    if (time >= now) continue;
    plot.first = std::min(plot.first, time);
    plot.damaged_chunks.push_back({time, static_cast<double>(Number(sample, "damaged_chunks"))});
  }
  const uint64_t damaged = Number(stats, "damaged_chunks");
  plot.damaged_chunks.push_back({now, static_cast<double>(damaged)});
  plot.name.description =
      fmt::format("{} scrubs, {} of them found damage. {} damaged chunks are known.", scrubs.size(),
                  with_damage, FormatCount(damaged));
  Section section{.id = "damage",
                  .title = "Damage and scrubs",
                  .lead =
                      "A scrub reads and verifies all stored data. Damage that is known stays "
                      "in the list until the data is written again or repaired."};
  const Json& last = stats.at("last_scrub");
  if (last.is_null()) {
    section.caution =
        "No scrub has verified the whole store yet. siltfs scrub does so while the store is in "
        "use.";
  }
  section.figures = {{"Scrubs, and the damaged chunks known", DrawBoth(plot)}};
  section.facts = {
      {"Last scrub", last.is_null() ? "never" : DateText(last.at("ended_at").get<double>())},
      {"Scrubs recorded", FormatCount(scrubs.size())},
      {"With damage", FormatCount(with_damage)},
      {"Damaged chunks now", FormatCount(damaged)},
      {"Damaged blocks now", FormatCount(Number(stats, "damaged_blocks"))},
      {"SHA-1 collisions", FormatCount(Number(stats, "sha1_collisions"))}};
  if (!table.rows.empty()) section.tables = {std::move(table)};
  return section;
}

}  // namespace siltfs::report
