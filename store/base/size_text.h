// Sizes and counts as text for users: "8K", "52M", "1.5 GiB", "1,234,567".
//
// Thread-safety: functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// The number of bytes that the text means. The text is a whole decimal number. One of the letters
// K, M, G, T, P or E (powers of 1024) may follow it, and "iB" may follow the letter: "8K" is
// "8KiB". Letters may have either case. kInvalidArgument for any other text, and for a number that
// does not fit 64 bits.
Result<uint64_t> ParseSize(std::string_view text);

// A rounded size for users: "0 B", "999 B", "1.5 MiB".
std::string FormatSize(uint64_t bytes);
// The same with a chosen number of decimals, and for sizes beyond 64 bits.
std::string FormatSize(double bytes, int decimals);

// A count with its digits in groups: "1,234,567".
std::string FormatCount(uint64_t count);

// The exact size in the form that ParseSize takes: "64", "128K", "5M".
std::string FormatSizeArgument(uint64_t bytes);

}  // namespace siltfs
