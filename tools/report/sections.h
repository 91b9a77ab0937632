// The sections of a store's report. Each takes the parts of the document that it shows
// (fs/control/survey_json.h).
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/report/page.h"

namespace siltfs::report {

using Json = nlohmann::json;

inline uint64_t Number(const Json& object, const char* key) {
  return object.at(key).get<uint64_t>();
}
// All files of the store on the disk, without the reserve.
inline uint64_t DiskBytes(const Json& sizes) {
  return Number(sizes, "stored_bytes") + Number(sizes, "metadata_bytes") +
         Number(sizes, "index_bytes");
}
// "12.5 : 1"
std::string RatioText(double ratio);
// "13.2 %"; 0 of 0 is 0.
std::string PercentText(double part, double whole);

Section SpaceSection(const Json& stats);
// `now`: the time of the statistics, which are the last sample.
Section HistorySection(const Json& stats, const Json& survey, double now);
Section LengthsSection(const Json& survey);
Section SharingSection(const Json& stats, const Json& survey);
Section SegmentsSection(const Json& survey);
Section IndexSection(const Json& index);
Section MemorySection(const Json& index, const Json& survey, double now);
Section DamageSection(const Json& stats, const Json& survey, double now);

}  // namespace siltfs::report
