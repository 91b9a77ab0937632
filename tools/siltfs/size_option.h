// Options whose values are sizes: parsed, compared with what is allowed, and refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// kInvalidArgument, with a sentence that begins with the option's name, unless `text` is a size.
Result<uint64_t> ParseSizeOption(std::string_view option, std::string_view text);

// As given on the command line.
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

// A size that was not given keeps its proportion to --chunk-avg, or is that of `defaults` where
// that was not given either. kInvalidArgument names the option and the range that the others leave
// to it.
Result<ChunkSizes> ParseChunkSizes(const ChunkSizeOptions& options, const ChunkSizes& defaults);

// A sentence for a person who gives the index `bytes` on a machine with `physical_bytes` (0: not
// known) of memory, if that makes little sense: `option` is how it was given. 0 is meant: the index
// then has what it cannot do without.
std::optional<std::string> WarnOfIndexMemory(std::string_view option, uint64_t bytes,
                                             uint64_t physical_bytes);

}  // namespace siltfs
