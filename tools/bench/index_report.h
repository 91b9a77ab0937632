// The statistics that siltfs-bench index prints, as JSON. Scripts rely on the keys.
//
// Thread-safety: the functions have no state.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "tools/bench/index_load.h"
#include "tools/bench/index_lookups.h"
#include "tools/bench/memory_trace.h"

namespace siltfs {

// The index's counters when a phase begins or ends. IndexStats would keep a list of all stores.
struct IndexCounters {
  uint64_t flash_bytes_written = 0;
  uint64_t conversions = 0;
  uint64_t merges = 0;
};
IndexCounters CountersOf(const IndexStats& stats);

// A phase of puts: the growth from an empty index, or updates at a constant number of entries.
struct IndexPhase {
  uint64_t put_count = 0;
  PutStatistics puts;
  IndexCounters before;
  IndexCounters after;
  IndexMemory end_memory;                   // as the index counts it
  std::optional<MemoryPeak> peak_memory;    // only with a trace
  std::optional<LookupStatistics> lookups;  // after the puts
};

double Ratio(uint64_t part, uint64_t whole);

nlohmann::ordered_json ReportOf(const LatencyHistogram& latency);  // in microseconds
nlohmann::ordered_json ReportOf(const IndexMemory& memory);
nlohmann::ordered_json ReportOf(const IndexPhase& phase);
// The costs that the engine's model predicts for an index with this number of entries.
nlohmann::ordered_json ReportOf(const IndexPlan& plan, uint64_t entries);
// Adds the summary of growth and, if there are any, of updates to the outermost object.
void AddSummary(const IndexPhase& growth, const IndexPhase& updates,
                nlohmann::ordered_json& report);
// Adds the keys of lookups and of the device to the outermost object.
void AddLookups(const LookupStatistics& lookups, const DeviceReads& device,
                nlohmann::ordered_json& report);

}  // namespace siltfs
