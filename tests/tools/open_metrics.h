// A strict parser of the text format of OpenMetrics 1.0, for tests of `siltfs metrics`. It knows
// gauges and counters, and refuses timestamps and exemplars: these metrics have none.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace siltfs::testing {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ParsedFamily {
  std::string type;  // "gauge" or "counter"
  std::string unit;
  std::string help;
  std::vector<MetricSample> samples;
};

// A violation of the format; the message has the line.
class NotOpenMetrics : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the families by name. Throws NotOpenMetrics.
std::map<std::string, ParsedFamily> ParseOpenMetrics(std::string_view text);

}  // namespace siltfs::testing
