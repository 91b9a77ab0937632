#include "tools/siltfs/index_stat_report.h"

#include <fmt/format.h>

#include "store/base/size_text.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

uint64_t Number(const Json& statistics, const char* key) {
  return statistics.at(key).get<uint64_t>();
}

std::string Line(const std::string& kind, const std::string& which, const std::string& id,
                 const Json& store) {
  return fmt::format(
      "{:<12} {:>9} {:>8} {:>12} {:>11} {:>11} {:>8.1f}% {:>12} {:>12} {:>9.4f}%\n", kind, which,
      id, Number(store, "entries"), FormatSize(Number(store, "flash_bytes")),
      FormatSize(Number(store, "memory_bytes")), 100 * store.at("occupancy").get<double>(),
      Number(store, "probes"), Number(store, "flash_reads"),
      100 * store.at("false_positive_rate").get<double>());
}

std::string Heading(const char* which, const char* id) {
  return fmt::format("{:<12} {:>9} {:>8} {:>12} {:>11} {:>11} {:>9} {:>12} {:>12} {:>10}\n", "kind",
                     which, id, "entries", "flash", "memory", "occupied", "probes", "flash reads",
                     "false pos.");
}

}  // namespace

std::string FormatIndexStatReport(const Json& statistics) {
  std::string text =
      fmt::format("Index of {} ({})\n", Printable(statistics.at("store").get<std::string>()),
                  statistics.at("engine").get<std::string>());
  if (statistics.value("rebuild_interrupted", false)) {
    text +=
        "  rebuilt only in part: siltfs index rebuild was interrupted; run it again, or mount the "
        "store\n";
  }
  text += fmt::format("  {} entries, {} of memory ({:.2f} bytes an entry), {} of flash\n",
                      Number(statistics, "entries"), FormatSize(Number(statistics, "memory_bytes")),
                      statistics.at("memory_bytes_per_entry").get<double>(),
                      FormatSize(Number(statistics, "flash_bytes")));
  text +=
      fmt::format("  {} lookups, {:.4f} flash reads each; {:.2f} bytes written for each put\n",
                  Number(statistics, "lookups"), statistics.at("read_amplification").get<double>(),
                  statistics.at("write_amplification").get<double>());
  text += fmt::format("  {} conversions, {} merges, {} stores wait for one; {} damaged pages\n\n",
                      Number(statistics, "conversions"), Number(statistics, "merges"),
                      Number(statistics, "merge_backlog"), Number(statistics, "damaged_pages"));
  text += Heading("stores", "");
  for (const Json& kind : statistics.at("kinds")) {
    text +=
        Line(kind.at("kind").get<std::string>(), std::to_string(Number(kind, "count")), "", kind);
  }
  text += "\n" + Heading("partition", "id");
  for (const Json& store : statistics.at("stores")) {
    text += Line(store.at("kind").get<std::string>(), std::to_string(Number(store, "partition")),
                 std::to_string(Number(store, "id")), store);
  }
  return text;
}

}  // namespace siltfs
