#include "tools/bench/index_report.h"

#include <algorithm>

#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

// The index's write amplification counts this for each put, whatever the size of its slots, so that
// strategies can be compared.
constexpr uint64_t kEntryBytes = ChunkName::kSize + Location::kEncodedSize;

uint64_t WrittenIn(const IndexPhase& phase) {
  return phase.after.flash_bytes_written - phase.before.flash_bytes_written;
}

double Microseconds(double nanoseconds) { return nanoseconds / 1000; }

double ProcessorMicroseconds(const GetStatistics& gets) {
  return gets.processor_seconds * 1e6 / static_cast<double>(gets.gets);
}

Json PercentilesOf(const LatencyHistogram& latency) {
  const auto percentile = [&](double share) {
    return Microseconds(static_cast<double>(latency.Percentile(share)));
  };
  return {{"p50", percentile(0.5)}, {"p99", percentile(0.99)}, {"p999", percentile(0.999)}};
}

void AddMemory(const IndexPhase& phase, Json& report) {
  const PutStatistics& puts = phase.puts;
  report["memory_bytes"] = puts.memory_bytes;
  report["memory_peak_entries"] = puts.memory_entries;
  report["memory_bytes_per_entry"] = Ratio(puts.memory_bytes, puts.memory_entries);
  report["memory_bytes_per_entry_most"] = puts.most_bytes_per_entry;
  report["memory_bytes_end"] = puts.end_memory_bytes;
  report["index_memory_end"] = ReportOf(phase.end_memory);
  if (!phase.peak_memory) return;
  const MemoryPeak& peak = *phase.peak_memory;
  report["index_memory_peak"] = ReportOf(peak.memory);
  report["index_memory_peak_entries"] = peak.entries;
  report["index_memory_peak_bytes_per_entry"] = Ratio(peak.memory.total, peak.entries);
}

}  // namespace

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

IndexCounters CountersOf(const IndexStats& stats) {
  return {.flash_bytes_written = stats.flash_bytes_written,
          .conversions = stats.conversions,
          .merges = stats.merges};
}

Json ReportOf(const LatencyHistogram& latency) {
  const auto microseconds = [](auto nanoseconds) {
    return Microseconds(static_cast<double>(nanoseconds));
  };
  return {{"calls", latency.count()},
          {"mean", microseconds(latency.Mean())},
          {"p50", microseconds(latency.Percentile(0.5))},
          {"p99", microseconds(latency.Percentile(0.99))},
          {"p99_9", microseconds(latency.Percentile(0.999))},
          {"max", microseconds(latency.max())}};
}

Json ReportOf(const IndexMemory& memory) {
  return {{"log_store_bytes", memory.log_stores},
          {"hash_store_filter_bytes", memory.hash_store_filters},
          {"page_index_bytes", memory.page_indexes},
          {"sorted_store_filter_bytes", memory.sorted_store_filters},
          {"other_bytes", memory.other},
          {"bytes", memory.total}};
}

Json ReportOf(const IndexPhase& phase) {
  const uint64_t written = WrittenIn(phase);
  Json report = {{"puts", phase.put_count},
                 {"put_per_s", static_cast<double>(phase.put_count) / phase.puts.seconds},
                 {"put_call_us", ReportOf(phase.puts.latency)},
                 {"bytes_written_per_put", Ratio(written, phase.put_count)},
                 {"write_amplification", Ratio(written, phase.put_count * kEntryBytes)},
                 {"conversions", phase.after.conversions - phase.before.conversions},
                 {"merges", phase.after.merges - phase.before.merges}};
  AddMemory(phase, report);
  if (!phase.lookups) return report;
  const GetStatistics& hits = phase.lookups->hits;
  const GetStatistics& misses = phase.lookups->misses;
  if (hits.gets > 0) {
    report["gets"] = hits.gets;
    report["get_hit_per_s"] = Median(hits.per_s);
    report["get_miss_per_s"] = Median(misses.per_s);
    report["reads_per_hit"] = Ratio(hits.reads, hits.gets);
    report["reads_per_miss"] = Ratio(misses.reads, misses.gets);
    report["processor_us_per_hit"] = ProcessorMicroseconds(hits);
    report["processor_us_per_miss"] = ProcessorMicroseconds(misses);
  }
  if (hits.latency.count() > 0) {
    report["single_hit_us"] = ReportOf(hits.latency);
    report["single_miss_us"] = ReportOf(misses.latency);
  }
  return report;
}

Json ReportOf(const IndexPlan& plan, uint64_t entries) {
  return {{"write_amplification", plan.costs->write_amplification},
          {"written_bytes_per_put", plan.costs->written_bytes_per_put},
          {"written_bytes_per_update", plan.costs->written_bytes_per_update},
          {"read_amplification", plan.costs->reads_per_miss},
          {"reads_per_hit", plan.costs->reads_per_hit},
          {"memory_bytes", plan.memory_bytes},
          {"memory_bytes_per_entry", plan.memory_bytes / static_cast<double>(entries)},
          {"hash_stores", plan.costs->component_stores}};
}

void AddSummary(const IndexPhase& growth, const IndexPhase& updates, Json& report) {
  report["written_bytes_per_put"] = Ratio(WrittenIn(growth), growth.put_count);
  if (growth.lookups && growth.lookups->hits.latency.count() > 0) {
    report["latency_us"] = {{"hit", PercentilesOf(growth.lookups->hits.latency)},
                            {"miss", PercentilesOf(growth.lookups->misses.latency)}};
  }
  if (updates.put_count == 0) return;
  report["update_per_s"] = static_cast<double>(updates.put_count) / updates.puts.seconds;
  report["update_write_amplification"] = Ratio(WrittenIn(updates), updates.put_count * kEntryBytes);
  report["memory_bytes_per_entry_updates"] = updates.puts.most_bytes_per_entry;
}

void AddLookups(const LookupStatistics& lookups, const DeviceReads& device, Json& report) {
  const double device_per_s = Median(lookups.device_per_s);
  const double hits = Median(lookups.hits.per_s);
  report["gets"] = lookups.hits.gets;
  report["get_hit_per_s"] = hits;
  report["get_miss_per_s"] = Median(lookups.misses.per_s);
  report["reads_per_hit"] = Ratio(lookups.hits.reads, lookups.hits.gets);
  report["reads_per_miss"] = Ratio(lookups.misses.reads, lookups.misses.gets);
  report["pages_per_hit"] = Ratio(lookups.hits.pages, lookups.hits.gets);
  report["pages_per_miss"] = Ratio(lookups.misses.pages, lookups.misses.gets);
  report["device_reads_per_s"] = device_per_s;
  report["device_reads_lowest_per_s"] = *std::ranges::min_element(lookups.device_per_s);
  report["device_reads_highest_per_s"] = *std::ranges::max_element(lookups.device_per_s);
  report["device_processor_us_per_read"] = lookups.device_processor_us;
  report["device_file_bytes"] = device.size();
  report["device_direct"] = device.direct();
  report["read_mechanism"] = device.mechanism();
  report["get_hit_share_of_device"] = hits / device_per_s;
  if (!lookups.files_per_s.empty()) {
    const double files_per_s = Median(lookups.files_per_s);
    report["index_file_reads_per_s"] = files_per_s;
    report["get_hit_share_of_index_files"] = hits / files_per_s;
  }
  if (report.contains("mix_get_per_s")) {
    report["mix_get_share_of_device"] = report["mix_get_per_s"].get<double>() / device_per_s;
  }
}

}  // namespace siltfs
