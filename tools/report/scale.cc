#include "tools/report/scale.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "store/base/size_text.h"

namespace siltfs::report {
namespace {

// The greatest number that is also a uint64_t. Figures of a damaged history may be greater.
constexpr double kMostBytes = 18'446'744'073'709'549'568.0;
constexpr double kMinute = 60;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;

// Distances of ticks.
constexpr std::array kTimeSteps = {kMinute,   5 * kMinute, 15 * kMinute, kHour,      3 * kHour,
                                   6 * kHour, 12 * kHour,  kDay,         2 * kDay,   7 * kDay,
                                   14 * kDay, 28 * kDay,   91 * kDay,    182 * kDay, 365 * kDay};

// The smallest of 1, 2 or 5 times a power of ten that is at least `least`.
double RoundUp(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// The power of 1024 in which a size is written.
double UnitOf(double bytes) {
  double unit = 1;
  while (bytes >= 1024 * unit && unit < 1e18) unit *= 1024;
  return unit;
}

// gmtime fails for years that do not fit.
std::tm UtcOf(double seconds) {
  constexpr double kLimit = 1e11;
  return fmt::gmtime(static_cast<std::time_t>(std::clamp(seconds, -kLimit, kLimit)));
}

}  // namespace

std::string ShortCount(double count) {
  constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  const bool whole = unit == 0 || count >= 99.95 || std::abs(count - std::round(count)) < 0.05;
  return fmt::format("{:.{}f}{}", count, whole ? 0 : 1, kUnits[unit]);
}

std::string ShortText(double value, Quantity quantity) {
  switch (quantity) {
    case Quantity::kBytes:
      return FormatSize(static_cast<uint64_t>(std::clamp(value, 0.0, kMostBytes)));
    case Quantity::kBytesPerEntry:
      return fmt::format("{:.2f} B", value);
    case Quantity::kCount:
      break;
  }
  return ShortCount(value);
}

Axis MakeAxis(double greatest, Quantity quantity, int about) {
  Axis axis;
  if (greatest <= 0) {
    axis.ticks = {{0, quantity == Quantity::kBytes ? "0 B" : "0"}};
    return axis;
  }
  const double unit = quantity == Quantity::kBytes ? UnitOf(greatest) : 1;
  double step = RoundUp(greatest / unit / about);
  if (quantity == Quantity::kCount) step = std::max(step, 1.0);
  const auto count = static_cast<int>(std::ceil(greatest / unit / step - 1e-9));
  axis.top = count * step * unit;
  for (int i = 0; i <= count; ++i) {
    const double value = i * step * unit;
    std::string label;
    if (quantity == Quantity::kBytes) {
      label = i == 0 ? "0" : FormatSize(value, step < 1 && unit > 1 ? 1 : 0);
    } else if (quantity == Quantity::kCount) {
      label = ShortCount(value);
    } else {
      label = i == 0 ? "0" : fmt::format("{:.{}f} B", value, step < 0.1 ? 2 : step < 1 ? 1 : 0);
    }
    axis.ticks.push_back({value, label});
  }
  return axis;
}

std::vector<Tick> TimeTicks(double first, double last, int about) {
  const double least = (last - first) / std::max(about, 1);
  const auto* found = std::ranges::find_if(kTimeSteps, [&](double s) { return s >= least; });
  const double step =
      found != kTimeSteps.end() ? *found : kTimeSteps.back() * std::ceil(least / kTimeSteps.back());
  std::vector<Tick> ticks;
  for (double at = std::ceil(first / step) * step; at <= last; at += step) {
    const std::tm utc = UtcOf(at);
    const bool within_day = step < kDay;
    ticks.push_back({at, within_day          ? fmt::format("{:%H:%M}", utc)
                         : step > 100 * kDay ? fmt::format("{:%b %Y}", utc)
                                             : fmt::format("{:%d %b}", utc)});
  }
  return ticks;
}

std::string DateText(double seconds) { return fmt::format("{:%Y-%m-%d}", UtcOf(seconds)); }

std::string TimeText(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", UtcOf(seconds));
}

}  // namespace siltfs::report
