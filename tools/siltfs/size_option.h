// Parses options with sizes as values, and checks their ranges; errors name the option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// Returns the bytes. kInvalidArgument if `text` is not a size; the message begins with the option's
// name.
Result<uint64_t> ParseSizeOption(std::string_view option, std::string_view text);

// The values on the command line.
struct ChunkSizeOptions {
  std::optional<std::string> min;  // --chunk-min
  std::optional<std::string> avg;  // --chunk-avg
  std::optional<std::string> max;  // --chunk-max
};

struct ChunkSizes {  // bytes
  uint32_t min = 0;
  uint32_t avg = 0;
  uint32_t max = 0;
};

// Returns all three sizes. If --chunk-avg is given, a missing size follows from it by the usual
// ratio; otherwise it is taken from `defaults`. kInvalidArgument names the option and the range
// that the other options allow.
Result<ChunkSizes> ParseChunkSizes(const ChunkSizeOptions& options, const ChunkSizes& defaults);

// Returns a warning if the limit `bytes` of the index's memory is more than the machine's memory
// `physical_bytes` (0: not known), or less than the `least_bytes` that the engine takes in any
// case. `option` names the option in the warning. If `bytes` is 0, the index uses its minimum, and
// there is no warning.
std::optional<std::string> WarnOfIndexMemory(std::string_view option, uint64_t bytes,
                                             uint64_t physical_bytes, uint64_t least_bytes);

}  // namespace siltfs
