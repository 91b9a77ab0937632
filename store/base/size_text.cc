#include "store/base/size_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace siltfs {
namespace {

constexpr unsigned kBitsPerUnit = 10;
constexpr std::string_view kUnits = "KMGTPE";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The unit's power of two; nullopt for an unknown unit.
std::optional<unsigned> ShiftOf(std::string_view unit) {
  if (unit.empty()) return 0;
  const bool whole = unit.size() == 3 && Lower(unit[1]) == 'i' && Lower(unit[2]) == 'b';
  if (unit.size() != 1 && !whole) return std::nullopt;
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (Lower(kUnits[i]) == Lower(unit[0])) return static_cast<unsigned>(i + 1) * kBitsPerUnit;
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const auto too_large = [&] {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("the size \"{}\" is too large: the limit is 16E, less one byte", text));
  };
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const auto shift = ShiftOf({rest, static_cast<size_t>(end - rest)});
  if (error == std::errc::invalid_argument || !shift) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("\"{}\" is not a size: a size is a whole number, alone or followed by K, M, "
                    "G, T, P or E (KiB, MiB, GiB, TiB, PiB or EiB)",
                    text));
  }
  if (error == std::errc::result_out_of_range) return too_large();
  if (number > std::numeric_limits<uint64_t>::max() >> *shift) return too_large();
  return number << *shift;
}

std::string FormatSize(double bytes, int decimals) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  // From this value on, rounding to `decimals` would print 1024.
  const double unit_ends_at = 1024 - 0.5 * std::pow(10.0, -decimals);
  double value = bytes / 1024;
  size_t unit = 0;
  while (value >= unit_ends_at && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}iB", value, decimals, kUnits[unit]);
}

std::string FormatSize(uint64_t bytes) { return FormatSize(static_cast<double>(bytes), 1); }

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t place = text.size(); place > 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

std::string FormatSizeArgument(uint64_t bytes) {
  size_t units = 0;
  while (bytes != 0 && bytes % 1024 == 0 && units < kUnits.size()) {
    bytes /= 1024;
    ++units;
  }
  return units == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kUnits[units - 1]);
}

}  // namespace siltfs
