// The kinds of the index of a frozen file's pages.
#pragma once

#include <cstdint>

namespace siltfs {

// The numbers are on disk (docs/format.md, "SILT frozen store").
enum class PageIndexKind : uint8_t { kTrie = 0, kBounds = 1 };
inline constexpr uint8_t kMostPageIndexKind = 1;

}  // namespace siltfs
