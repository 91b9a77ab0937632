// Which name a person may have meant: "did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siltfs {

// The position of the name that `word` most likely stands for: one that it abbreviates, or one that
// differs in a letter or two, counted as inserted, left out, replaced or swapped with the next. The
// first of several that are equally close; nothing if none is close.
std::optional<size_t> FindClosestName(std::string_view word, std::span<const std::string> names);

}  // namespace siltfs
