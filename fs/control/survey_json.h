// What `siltfs report` shows, as JSON: between the daemon and the command, not for other programs.
//
//   {"version":1, "stats":{...}, "index":{...}, "survey":{...}}
//
// "stats" is as in stats_json.h, "index" as in index_json.h. "survey" has the fields of StoreSurvey
// (fs/interface/store_survey.h), except that classes of chunks without a chunk are left out, and
// segments are joined into cells:
//
//   "lengths", "shared": [{"from":N,"to":N,"chunks":N,"bytes":N}...], ascending; "to" is exclusive
//   "segments": {"count":N, "bytes":N, "live_bytes":N or null, "per_cell":N, "cells":[{"first":ID,
//               "last":ID, "segments":N, "bytes":N, "chunks":N, "live":0 to 1 or null,
//               "nodes":SEGMENTS, "open":SEGMENTS}...]}
//
// A cell has consecutive segments, so that a store of any size has at most kMostCells cells. "live"
// is the share of the cell's bytes that are in use; null if the share of a segment is not known.
//
// Thread-safety: pure functions, and every call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/control/stats_json.h"
#include "fs/interface/store_maintenance.h"
#include "fs/interface/store_survey.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr uint64_t kSurveyVersion = 1;
inline constexpr size_t kMostCells = 1200;

nlohmann::json ToJson(const StoreSurvey& survey);

// Surveys the store, and returns the whole document. Errors: those of Survey and GetStats.
Result<nlohmann::json> SurveyToJson(StoreMaintenance& maintenance, const std::string& store,
                                    const std::optional<DaemonInfo>& daemon,
                                    const SurveyProgressFunction& on_progress);

}  // namespace siltfs
