#include "tools/siltfs/stat_overview.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/space_bar.h"
#include "tools/siltfs/text_layout.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr size_t kLabelColumns = 12;
// A longer bar is not easier to read.
constexpr size_t kMostBarColumns = 72;
constexpr size_t kLeastBarColumns = 12;

std::string Label(std::string_view label) { return fmt::format("{:<{}}", label, kLabelColumns); }

std::string Line(std::string_view label, std::string_view text) {
  return fmt::format("{}{}\n", Label(label), text);
}

std::string Text(const Json& statistics, const char* key) {
  const auto found = statistics.find(key);
  const bool has = found != statistics.end() && found->is_string();
  return has ? Printable(found->get<std::string>()) : std::string();
}

std::string FormatIdentity(const Json& statistics) {
  std::string text = Line("Store", Text(statistics, "store"));
  // Daemons of earlier versions report neither of these.
  for (const auto& [label, key] : {std::pair("Label", "label"), std::pair("UUID", "uuid")}) {
    const std::string value = Text(statistics, key);
    if (!value.empty()) text += Line(label, value);
  }
  return text;
}

std::string FormatMount(const Json& statistics) {
  if (statistics.at("pid").is_null()) return Line("Mounted", "no");
  std::string text =
      Line("Mounted", fmt::format("on {} (process {})", Text(statistics, "mountpoint"),
                                  statistics.at("pid").get<int64_t>()));
  if (!statistics.at("transport").is_null()) {
    const bool rings = statistics.at("transport") == "io_uring";
    text += Line("Requests", rings ? "through io_uring" : "through /dev/fuse");
  }
  return text;
}

std::string FormatStates(const Json& statistics) {
  std::string text;
  if (statistics.at("read_only").get<bool>()) {
    const bool failed = !statistics.at("read_only_cause").is_null();
    text += Line("Read-only", failed ? Text(statistics, "read_only_cause") : "yes");
  }
  const Json& replay = statistics.at("index_replay");
  if (replay.at("running").get<bool>()) {
    text += Line("Index", fmt::format("is being rebuilt: {} of {} segments; writes wait",
                                      replay.at("segments_done").get<uint64_t>(),
                                      replay.at("segments_total").get<uint64_t>()));
  }
  return text;
}

Tint TintOf(HealthState state) {
  switch (state) {
    case HealthState::kOk:
      return Tint::kGreen;
    case HealthState::kWarning:
      return Tint::kYellow;
    default:
      return Tint::kRed;
  }
}

std::string FormatHealthLine(const Json& statistics, const TextStyle& style, double now) {
  const HealthReport report = JudgeHealth(statistics, HealthLimits(), now);
  std::vector<std::string> words = WordsOf(Printable(HealthSentence(report)));
  const std::string state = fmt::format("{}:", NameOf(report.state()));
  words.insert(words.begin(), Tinted(state, TintOf(report.state()), style));
  // Only people need narrow lines; programs that read the output look for one line.
  return Wrapped(Label("Health"), words, " ", style.interactive ? style.columns : SIZE_MAX);
}

// The parts of the disk. Empty if the daemon does not report the disk, as those of earlier
// versions.
std::vector<BarPart> PartsOfDisk(const Json& statistics) {
  const auto number = [&](const char* key) { return statistics.value(key, uint64_t{0}); };
  const uint64_t disk = number("disk_bytes");
  if (disk == 0) return {};
  const uint64_t stored = number("stored_bytes");
  const uint64_t dead = std::min(number("dead_bytes"), stored);
  const uint64_t free = number("disk_available_bytes");
  std::vector<BarPart> parts = {
      {"data", stored - dead, '#', "\u2588", Tint::kBlue},
      {"dead", dead, 'x', "\u2593", Tint::kRed},
      {"metadata", number("metadata_bytes"), 'm', "\u2592", Tint::kMagenta},
      {"index", number("index_bytes"), 'i', "\u2591", Tint::kCyan},
      {"reserve", number("reserve_bytes"), 'r', "\u2261", Tint::kYellow},
      {"of other files", 0, 'o', "\u253c", Tint::kGray},
      {"free", free, '.', "\u00b7", Tint::kNone},
  };
  uint64_t known = 0;
  for (const BarPart& part : parts) known += part.bytes;
  parts[parts.size() - 2].bytes = disk - std::min(disk, known);
  return parts;
}

std::string FormatDisk(const Json& statistics, const TextStyle& style) {
  const std::vector<BarPart> parts = PartsOfDisk(statistics);
  if (parts.empty()) return "";
  const size_t room = style.columns > kLabelColumns ? style.columns - kLabelColumns : 0;
  const size_t columns = std::clamp(room, kLeastBarColumns, kMostBarColumns);
  return Line("Disk", FormatBar(parts, columns, style)) +
         Wrapped(std::string(kLabelColumns, ' '), LegendOf(parts, style), "  ", style.columns);
}

}  // namespace

std::string HealthSentence(const HealthReport& report) {
  if (report.findings.empty()) return report.overview;
  std::string sentence = report.findings.front().sentence;
  if (report.findings.size() > 1) {
    sentence += fmt::format(" (and {} more: siltfs check-health {})", report.findings.size() - 1,
                            report.subject);
  }
  return sentence;
}

std::string FormatStatOverview(const Json& statistics, const TextStyle& style, double now) {
  return FormatIdentity(statistics) + FormatMount(statistics) + FormatStates(statistics) +
         FormatHealthLine(statistics, style, now) + FormatDisk(statistics, style);
}

}  // namespace siltfs
