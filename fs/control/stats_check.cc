#include "fs/control/stats_check.h"

#include <array>
#include <string>
#include <utility>

#include "fs/control/stats_json.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Place = Json::json_pointer;

// Documents that together have each key with a value, and as null if it may be null.
class Patterns {
 public:
  Patterns() {
    FileSystemStats stats;
    documents_[0] = ToJson(stats, "", std::nullopt);
    stats.deltas.emplace();
    documents_[1] = ToJson(stats, "", std::nullopt);
    stats.label = stats.uuid = stats.read_only_cause = "text";
    stats.last_scrub.emplace();
    stats.guide.emplace();
    stats.deltas->lsh.emplace();
    stats.index.stores.push_back({.kind = "text"});
    documents_[2] = ToJson(stats, "", DaemonInfo{.mountpoint = "text", .transport = "text"});
  }

  const Json& full() const { return documents_.back(); }
  bool MayBeNull(const Place& place) const {
    for (const Json& document : documents_) {
      if (document.contains(place) && document.at(place).is_null()) return true;
    }
    return false;
  }

 private:
  std::array<Json, 3> documents_;
};

bool HasTypeOf(const Json& pattern, const Json& value) {
  if (pattern.is_number_float()) return value.is_number();
  if (pattern.is_number_unsigned()) return value.is_number_unsigned();
  if (pattern.is_number()) return value.is_number_integer();
  return pattern.type() == value.type();
}

// Whether the value, which belongs to this place, fits the pattern. Adds missing keys.
bool Fit(const Patterns& patterns, const Json& pattern, const Place& place, Json& value) {
  if (value.is_null() && patterns.MayBeNull(place)) return true;
  if (!HasTypeOf(pattern, value)) return false;
  if (pattern.is_array()) {
    for (Json& element : value) {
      if (!Fit(patterns, pattern.front(), place / 0, element)) return false;
    }
  }
  if (pattern.is_object()) {
    for (const auto& [key, part] : pattern.items()) {
      if (!Fit(patterns, part, place / key, value[key])) return false;
    }
  }
  return true;
}

}  // namespace

Result<Json> CheckStats(Json statistics) {
  static const Patterns patterns;
  if (Fit(patterns, patterns.full(), Place(), statistics)) return statistics;
  return Status(StatusCode::kNeedsNewer,
                "the daemon of the mount is of another version; mount the store again");
}

}  // namespace siltfs
