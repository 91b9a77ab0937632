// Judges the state of a store for a monitoring system, and prints it as a plugin of Nagios, Icinga
// and similar programs must: one line of text, with figures behind a "|".
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "store/base/status.h"
#include "tools/siltfs/health_state.h"

namespace siltfs {

std::string_view NameOf(HealthState state);  // "OK", "WARNING", ...

// A limit of 0 switches its check off. Percentages are at most 100.
struct HealthLimits {
  uint64_t scrub_age_days = 35;
  uint64_t nearly_full_percent = 85;             // of the disk below the store: a warning
  uint64_t full_percent = 95;                    // critical
  uint64_t backlog_bytes = uint64_t{100} << 30;  // awaiting recompression
  uint64_t dead_percent = 50;                    // of the stored bytes
  uint64_t bucket_lag_seconds = 900;             // that the bucket is behind, or does not answer
  bool must_be_mounted = false;
};

struct HealthFinding {
  HealthState state = HealthState::kOk;
  std::string check = {};     // stable, for programs: "damage", "disk", "scrub", ...
  std::string sentence = {};  // what is wrong, and what to do
};

// A figure of a plugin.
struct HealthFigure {
  std::string label = {};  // letters and '_'
  double value = 0;
  std::string unit = {};                // "B", "s", "c" (a counter), or nothing
  std::optional<double> warning = {};   // the state is worse above this value
  std::optional<double> critical = {};  // as well
  std::optional<double> maximum = {};   // of the value
};

struct HealthReport {
  std::string subject;                  // the mountpoint, or the store if it is not mounted
  std::string overview;                 // for a store without findings
  std::vector<HealthFinding> findings;  // the worst first
  std::vector<HealthFigure> figures;

  HealthState state() const;  // the worst of the findings
};

// Judges the statistics (fs/control/stats_json.h). `now`: seconds since 1970.
HealthReport JudgeHealth(const nlohmann::json& statistics, const HealthLimits& limits, double now);

// Judges a store whose statistics cannot be read. `failure`: that of ReadMonitoredStatistics.
HealthReport JudgeFailure(const control::DaemonAddress& address, const Status& failure);

// Returns the line of a plugin, with its newline.
std::string FormatHealth(const HealthReport& report);
nlohmann::json HealthToJson(const HealthReport& report);

// Returns the line of a plugin that cannot do its check.
std::string FormatUnknown(std::string_view sentence);

}  // namespace siltfs
