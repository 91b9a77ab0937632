// Sizes as people write them: "8K", "52M".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// Bytes: a decimal number, then nothing or one of K, M, G, T (powers of 1024, either case).
// kInvalidArgument for anything else, and for what does not fit 64 bits.
Result<uint64_t> ParseSize(std::string_view text);

// For people: "0 B", "999 B", "1.5 MiB".
std::string FormatSize(uint64_t bytes);

}  // namespace siltfs
