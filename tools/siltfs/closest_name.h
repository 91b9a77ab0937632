// Suggests a name for a misspelled one: "did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siltfs {

// Returns the position of the name closest to `word`, the first one if several are equally close.
// A name is close if `word` abbreviates it, or if it differs from `word` in a few letters
// (inserted, left out, replaced, or swapped with the next): in one letter, or in up to about a
// third of the letters of a longer word. Returns nullopt if no name is close.
std::optional<size_t> FindClosestName(std::string_view word, std::span<const std::string> names);

}  // namespace siltfs
