#include "tools/siltfs/prune_policy.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <optional>
#include <string_view>

namespace siltfs {
namespace {

struct Rule {
  std::string_view name;
  uint64_t PrunePolicy::*count;
  // A text that is equal for times of the same period, for strftime. Empty: each time is a period
  // of its own.
  const char* period;
};

constexpr Rule kRules[] = {
    {"last", &PrunePolicy::last, ""},
    {"hourly", &PrunePolicy::hourly, "%Y %j %H %z"},
    {"daily", &PrunePolicy::daily, "%Y %j"},
    {"weekly", &PrunePolicy::weekly, "%G %V"},
    {"monthly", &PrunePolicy::monthly, "%Y %m"},
    {"yearly", &PrunePolicy::yearly, "%Y"},
};

std::string PeriodOf(int64_t seconds, const char* format) {
  const std::time_t time = seconds;
  std::tm local{};
  localtime_r(&time, &local);
  char text[64];
  return {text, std::strftime(text, sizeof(text), format, &local)};
}

}  // namespace

std::vector<std::vector<std::string>> ChooseKept(const std::vector<int64_t>& times,
                                                 const PrunePolicy& policy) {
  std::vector<size_t> newest_first(times.size());
  std::iota(newest_first.rbegin(), newest_first.rend(), size_t{0});
  std::ranges::stable_sort(newest_first, [&](size_t a, size_t b) { return times[a] > times[b]; });
  std::vector<std::vector<std::string>> kept(times.size());
  for (const Rule& rule : kRules) {
    uint64_t left = policy.*rule.count;
    std::optional<std::string> last_period;
    for (const size_t at : newest_first) {
      if (left == 0) break;
      if (*rule.period != '\0') {
        std::string period = PeriodOf(times[at], rule.period);
        if (last_period == period) continue;
        last_period = std::move(period);
      }
      kept[at].emplace_back(rule.name);
      --left;
    }
  }
  return kept;
}

}  // namespace siltfs
