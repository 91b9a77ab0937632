#include "tools/siltfs/closest_name.h"

#include <algorithm>
#include <vector>

namespace siltfs {
namespace {

constexpr size_t kShortestAbbreviation = 2;
// A longer word is not taken for a misspelled name, because its comparison takes long.
constexpr size_t kLongestName = 64;

// Returns the restricted Damerau-Levenshtein distance: no letter is changed twice.
size_t DistanceBetween(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> distance(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      const size_t replaced = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::optional<size_t> FindClosestName(std::string_view word, std::span<const std::string> names) {
  if (word.size() > kLongestName) return std::nullopt;
  const size_t most = std::max<size_t>(1, (word.size() + 1) / 3);
  std::optional<size_t> closest;
  size_t least = most + 1;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool abbreviated = word.size() >= kShortestAbbreviation && names[i].starts_with(word);
    const size_t distance = abbreviated ? 1 : DistanceBetween(word, names[i]);
    if (distance >= least || distance >= names[i].size()) continue;
    least = distance;
    closest = i;
  }
  return closest;
}

}  // namespace siltfs
