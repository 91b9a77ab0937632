// Parses the options of `siltfs mkfs` that `siltfs tune` has, too; errors are kInvalidArgument and
// name the option.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/superblock/superblock.h"

namespace siltfs {

inline constexpr int kMinCompressionLevel = 1;
inline constexpr int kMaxCompressionLevel = 19;

// --compression: the level of zstd; 0: none.
Result<int> ParseCompression(std::string_view text);
// The inverse: "zstd:3" or "none".
std::string FormatCompression(const Compression& compression);

// --label: returns the label. Refuses characters that terminals do not show.
Result<std::string> ParseLabel(const std::string& text);

}  // namespace siltfs
