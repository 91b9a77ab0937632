#include "tests/tools/open_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

namespace siltfs::testing {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsName(std::string_view name, bool colons) {
  const auto fits = [colons](char c) { return IsLetter(c) || (colons && c == ':'); };
  return !name.empty() && fits(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return fits(c) || IsDigit(c); });
}

// Reads one line from the left.
class Line {
 public:
  explicit Line(std::string_view line) : whole_(line), rest_(line) {}

  [[noreturn]] void Fail(const std::string& why) const {
    throw NotOpenMetrics(why + ": " + std::string(whole_));
  }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool Skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void Expect(std::string_view text) {
    if (!Skip(text)) Fail("no \"" + std::string(text) + "\"");
  }
  // Takes the text before one of these characters, or all of it.
  std::string TakeUntil(std::string_view characters) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(characters));
    rest_.remove_prefix(taken.size());
    return std::string(taken);
  }
  std::string TakeQuoted() {
    Expect("\"");
    std::string value;
    while (!Skip("\"")) {
      if (rest_.empty()) Fail("an open label value");
      if (Skip("\\n")) {
        value += '\n';
      } else if (Skip("\\\\")) {
        value += '\\';
      } else if (Skip("\\\"")) {
        value += '"';
      } else if (rest_[0] == '\\') {
        Fail("an unknown escape");
      } else {
        value += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    return value;
  }

 private:
  const std::string_view whole_;
  std::string_view rest_;
};

class Parser {
 public:
  void Take(std::string_view text) {
    Line line(text);
    if (ended_) line.Fail("a line after # EOF");
    if (text == "# EOF") {
      EndFamily(line);
      ended_ = true;
    } else if (line.Skip("# ")) {
      TakeDescription(line);
    } else {
      TakeSample(line);
    }
  }

  std::map<std::string, ParsedFamily> Finish() {
    if (!ended_) throw NotOpenMetrics("there is no # EOF");
    return std::move(families_);
  }

 private:
  void TakeDescription(Line& line) {
    const std::string keyword = line.TakeUntil(" ");
    line.Expect(" ");
    const std::string name = line.TakeUntil(" ");
    if (!IsName(name, true)) line.Fail("no name of a family");
    line.Expect(" ");
    if (name != name_) BeginFamily(name, line);
    if (!current_.samples.empty()) line.Fail("a description after samples");
    if (!described_.insert(keyword).second) line.Fail("described twice");
    const std::string value(line.rest());
    if (keyword == "TYPE") {
      if (value != "gauge" && value != "counter") line.Fail("an unexpected type");
      current_.type = value;
    } else if (keyword == "UNIT") {
      if (value.empty() || !name.ends_with("_" + value)) line.Fail("the name lacks its unit");
      current_.unit = value;
    } else if (keyword == "HELP") {
      // The older format of Prometheus knows no quotes here, and no other escapes.
      if (value.empty() || value.find_first_of("\\\"") != std::string::npos)
        line.Fail("unsafe help");
      current_.help = value;
    } else {
      line.Fail("an unknown keyword");
    }
  }

  void BeginFamily(const std::string& name, const Line& line) {
    EndFamily(line);
    name_ = name;
    current_ = {};
    described_.clear();
  }

  void EndFamily(const Line& line) {
    if (name_.empty()) return;
    if (current_.samples.empty()) line.Fail("the family before has no samples");
    const std::string sample = SampleName();
    if (!names_.insert(sample).second || (sample != name_ && !names_.insert(name_).second))
      line.Fail("the family before has a name twice");
    families_[name_] = std::move(current_);
    name_.clear();
  }

  std::string SampleName() const { return current_.type == "counter" ? name_ + "_total" : name_; }

  void TakeSample(Line& line) {
    MetricSample sample;
    sample.name = line.TakeUntil("{ ");
    if (name_.empty() || current_.type.empty()) line.Fail("a sample without a type");
    if (sample.name != SampleName()) line.Fail("a sample of another family");
    if (line.Skip("{")) {
      do {
        const std::string label = line.TakeUntil("=");
        if (!IsName(label, false)) line.Fail("no name of a label");
        line.Expect("=");
        if (!sample.labels.emplace(label, line.TakeQuoted()).second) line.Fail("a label twice");
      } while (line.Skip(","));
      line.Expect("}");
    }
    line.Expect(" ");
    const std::string_view number = line.rest();
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), sample.value);
    if (error != std::errc() || end != number.data() + number.size()) line.Fail("no number");
    if (current_.type == "counter" && !(sample.value >= 0 && std::isfinite(sample.value)))
      line.Fail("no count");
    for (const MetricSample& other : current_.samples) {
      if (other.labels == sample.labels) line.Fail("a sample twice");
    }
    current_.samples.push_back(std::move(sample));
  }

  std::map<std::string, ParsedFamily> families_;
  std::set<std::string> names_;
  std::string name_;  // of the current family
  ParsedFamily current_;
  std::set<std::string> described_;  // the keywords for the current family
  bool ended_ = false;
};

}  // namespace

std::map<std::string, ParsedFamily> ParseOpenMetrics(std::string_view text) {
  try {
    nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw NotOpenMetrics("not UTF-8");
  }
  Parser parser;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) throw NotOpenMetrics("the last line does not end");
    parser.Take(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return parser.Finish();
}

}  // namespace siltfs::testing
