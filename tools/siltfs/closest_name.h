// Suggests a name for a misspelled one: "did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siltfs {

// Returns the position of the name closest to `word`, the first one if several are equally close.
// Close is a name that `word` abbreviates, or a name that differs in one or two letters (inserted,
// left out, replaced, or swapped with the next). nullopt if no name is close.
std::optional<size_t> FindClosestName(std::string_view word, std::span<const std::string> names);

}  // namespace siltfs
