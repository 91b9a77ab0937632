#include "tools/siltfs/size_option.h"

#include <fmt/format.h>

#include <utility>

#include "chunker/parameters.h"
#include "store/base/size_text.h"

namespace siltfs {
namespace {

constexpr uint32_t kAvgPerMin = 4;  // unless --chunk-min is given
constexpr uint32_t kMaxPerAvg = 8;  // unless --chunk-max is given
constexpr uint32_t kLeastRatio = 2;

struct Range {
  uint32_t least;
  uint32_t most;
  std::string_view because = {};  // the reason, if another option sets the range
};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

Result<uint32_t> ParseWithin(std::string_view option, const std::string& text, const Range& range) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSizeOption(option, text));
  if (bytes >= range.least && bytes <= range.most) return static_cast<uint32_t>(bytes);
  return Wrong(fmt::format("{}: {} is not in the range from {} to {}{}{}", option, text,
                           FormatSizeArgument(range.least), FormatSizeArgument(range.most),
                           range.because.empty() ? "" : ", ", range.because));
}

}  // namespace

Result<uint64_t> ParseSizeOption(std::string_view option, std::string_view text) {
  const Result<uint64_t> size = ParseSize(text);
  if (!size.ok()) return Wrong(fmt::format("{}: {}", option, size.status().cause()));
  return *size;
}

Result<ChunkSizes> ParseChunkSizes(const ChunkSizeOptions& options, const ChunkSizes& defaults) {
  constexpr uint32_t kLeast = ChunkerParameters::kSmallestMin;
  constexpr uint32_t kMost = ChunkerParameters::kLargestMax;
  ChunkSizes sizes = defaults;
  if (options.avg) {
    const Range range = {.least = kLeast * (options.min ? kLeastRatio : kAvgPerMin),
                         .most = kMost / (options.max ? kLeastRatio : kMaxPerAvg)};
    SILTFS_ASSIGN_OR_RETURN(sizes.avg, ParseWithin("--chunk-avg", *options.avg, range));
    sizes.min = sizes.avg / kAvgPerMin;
    sizes.max = sizes.avg * (options.max ? kLeastRatio : kMaxPerAvg);
  }
  if (options.min) {
    const Range range = {
        .least = kLeast,
        .most = sizes.avg / kLeastRatio,
        .because = "because the mean (--chunk-avg) must be at least twice as large"};
    SILTFS_ASSIGN_OR_RETURN(sizes.min, ParseWithin("--chunk-min", *options.min, range));
  }
  if (options.max) {
    const Range range = {.least = sizes.avg * kLeastRatio,
                         .most = kMost,
                         .because = "because the mean (--chunk-avg) must be at most half as large"};
    SILTFS_ASSIGN_OR_RETURN(sizes.max, ParseWithin("--chunk-max", *options.max, range));
  }
  return sizes;
}

std::optional<std::string> WarnOfIndexMemory(std::string_view option, uint64_t bytes,
                                             uint64_t physical_bytes, uint64_t least_bytes) {
  if (physical_bytes > 0 && bytes > physical_bytes) {
    return fmt::format("{}: {} is more than this machine's memory of {}", option, FormatSize(bytes),
                       FormatSize(physical_bytes));
  }
  if (bytes > 0 && bytes < least_bytes) {
    return fmt::format("{}: {} is less than the {} that the index takes in any case", option,
                       FormatSize(bytes), FormatSize(least_bytes));
  }
  return std::nullopt;
}

}  // namespace siltfs
