#include "fs/fuse/size_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

namespace siltfs {

Result<uint64_t> ParseSize(std::string_view text) {
  const auto malformed = [&] {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("\"{}\" is not a size: a number, then K, M, G, T or nothing", text));
  };
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    return Status(StatusCode::kInvalidArgument, fmt::format("the size \"{}\" is too large", text));
  }
  if (error != std::errc() || end - rest > 1) return malformed();
  if (rest == end) return number;

  unsigned shift = 0;
  switch (*rest) {
    case 'K':
    case 'k':
      shift = 10;
      break;
    case 'M':
    case 'm':
      shift = 20;
      break;
    case 'G':
    case 'g':
      shift = 30;
      break;
    case 'T':
    case 't':
      shift = 40;
      break;
    default:
      return malformed();
  }
  if (number > std::numeric_limits<uint64_t>::max() >> shift) {
    return Status(StatusCode::kInvalidArgument, fmt::format("the size \"{}\" is too large", text));
  }
  return number << shift;
}

std::string FormatSize(uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {  // 1023.95 would be shown as 1024.0
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace siltfs
