// The output of `siltfs check-health`.
#include <fmt/format.h>

#include <algorithm>

#include "tools/siltfs/health.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// A "|" would end the text.
std::string WithoutBars(std::string_view text) {
  std::string safe = Printable(text);
  for (size_t at = 0; (at = safe.find('|', at)) != std::string::npos;) safe.replace(at, 1, "\\x7c");
  return safe;
}

// A number without an exponent, which plugins must not print.
std::string Plain(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string Plain(const std::optional<double>& value) { return value ? Plain(*value) : ""; }

// 'label'=value[unit];[warning];[critical];[minimum];[maximum]
std::string FormatFigure(const HealthFigure& figure) {
  std::string text =
      fmt::format("'{}'={}{};{};{};0;{}", figure.label, Plain(figure.value), figure.unit,
                  Plain(figure.warning), Plain(figure.critical), Plain(figure.maximum));
  if (text.ends_with(';')) text.pop_back();
  return text;
}

std::string Capitalized(std::string sentence) {
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

}  // namespace

std::string_view NameOf(HealthState state) {
  switch (state) {
    case HealthState::kOk:
      return "OK";
    case HealthState::kWarning:
      return "WARNING";
    case HealthState::kCritical:
      return "CRITICAL";
    case HealthState::kUnknown:
      break;
  }
  return "UNKNOWN";
}

std::string FormatHealth(const HealthReport& report) {
  std::string text = report.findings.empty() ? report.overview : "";
  for (const HealthFinding& finding : report.findings) {
    if (text.empty()) {
      text = finding.sentence;
    } else {
      text += ". " + Capitalized(finding.sentence);
    }
  }
  std::string line = fmt::format("SILTFS {} - {}: {}", NameOf(report.state()),
                                 WithoutBars(report.subject), WithoutBars(text));
  for (const HealthFigure& figure : report.figures)
    line += (&figure == &report.figures.front() ? " | " : " ") + FormatFigure(figure);
  return line + "\n";
}

Json HealthToJson(const HealthReport& report) {
  const auto lower = [](std::string_view name) {
    std::string text(name);
    for (char& c : text) c = static_cast<char>(c - 'A' + 'a');
    return text;
  };
  Json findings = Json::array();
  for (const HealthFinding& finding : report.findings) {
    findings.push_back({{"state", lower(NameOf(finding.state))},
                        {"check", finding.check},
                        {"message", finding.sentence}});
  }
  Json figures = Json::object();
  for (const HealthFigure& figure : report.figures) figures[figure.label] = figure.value;
  return {{"state", lower(NameOf(report.state()))},
          {"exit_code", static_cast<int>(report.state())},
          {"subject", report.subject},
          {"findings", std::move(findings)},
          {"figures", std::move(figures)}};
}

std::string FormatUnknown(std::string_view sentence) {
  return fmt::format("SILTFS {} - {}\n", NameOf(HealthState::kUnknown), WithoutBars(sentence));
}

}  // namespace siltfs
