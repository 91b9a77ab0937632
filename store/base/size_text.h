// Sizes as text for users: "8K", "52M", "1.5 GiB".
//
// Thread-safety: functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// Bytes: a whole decimal number, then nothing, or one of K, M, G, T, P, E (powers of 1024), which
// "iB" may follow: "8K" is "8KiB". Either case. kInvalidArgument for anything else, and for a
// number that does not fit 64 bits.
Result<uint64_t> ParseSize(std::string_view text);

// For users: "0 B", "999 B", "1.5 MiB".
std::string FormatSize(uint64_t bytes);
// With a chosen number of decimals, and for sizes beyond 64 bits.
std::string FormatSize(double bytes, int decimals);

// Exact, in the form that ParseSize takes: "64", "128K", "5M".
std::string FormatSizeArgument(uint64_t bytes);

}  // namespace siltfs
