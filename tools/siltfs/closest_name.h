// Suggests a name for a misspelled one: "did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siltfs {

// The position of the name closest to `word`: a name that `word` abbreviates, or one that differs
// in one or two letters (inserted, left out, replaced, or swapped with the next). The first of
// several equally close names; nullopt if none is close.
std::optional<size_t> FindClosestName(std::string_view word, std::span<const std::string> names);

}  // namespace siltfs
