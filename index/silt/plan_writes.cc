#include "index/silt/plan_writes.h"

#include <algorithm>
#include <cmath>

#include "index/silt/run_filter.h"

namespace siltfs {
namespace {

constexpr double kWays = 4;
constexpr double kBitsPerByte = 8;
constexpr double kUsualBucketBits = 11;  // see SiltParticulars::occupancy

// The part of an instance's entries that a merge adds, while the index grows. At least a HashStore
// is merged.
double PartAdded(double merge_entries, double instance_entries) {
  constexpr double kMost = 0.999;
  return std::min(kMost, merge_entries / std::max(1.0, instance_entries));
}

}  // namespace

double SiltPlaces(const SiltParameters& parameters) {
  return kWays * std::ldexp(1.0, static_cast<int>(parameters.bucket_bits));
}

double SiltLogStoreEntries(const SiltParameters& parameters, const SiltParticulars& particulars) {
  const double more_bits = static_cast<double>(parameters.bucket_bits) - kUsualBucketBits;
  const double occupancy = particulars.occupancy + particulars.occupancy_per_bit * more_bits;
  return std::clamp(occupancy, 0.5, 1.0) * SiltPlaces(parameters) + particulars.stash;
}

double OrEntry(double bytes, const SiltWorkload& workload) {
  return bytes > 0 ? bytes : workload.entry_bytes;
}

double LogFileBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars) {
  return SiltLogStoreEntries(parameters, particulars) *
             OrEntry(particulars.log_entry_bytes, workload) +
         particulars.log_file_bytes;
}

double HashStoresOfInstance(const SiltWorkload& workload, const SiltParameters& parameters,
                            const SiltParticulars& particulars) {
  return ArrangeHashStores(workload, parameters, particulars).average / parameters.instances /
         SiltLogStoreEntries(parameters, particulars);
}

double HashFilterBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                       const SiltParticulars& particulars) {
  if (particulars.sorted_runs) {
    const double store = SiltLogStoreEntries(parameters, particulars);
    const double runs =
        ArrangeHashStores(workload, parameters, particulars).peak / parameters.instances / store;
    const auto keys = static_cast<uint64_t>(store);
    return RunFilterSlices::For(runs, keys).MemoryBytes(keys);
  }
  return (parameters.tag_bits + particulars.hash_valid_bits) / kBitsPerByte *
         SiltPlaces(parameters);
}

double HashFileBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                     const SiltParticulars& particulars) {
  if (particulars.sorted_runs) {
    return SiltLogStoreEntries(parameters, particulars) * particulars.run_entry_bytes +
           HashFilterBytes(workload, parameters, particulars) + particulars.hash_file_bytes;
  }
  return SiltPlaces(parameters) * OrEntry(particulars.hash_place_bytes, workload) +
         particulars.hash_file_bytes;
}

double ConvertedEntries(const SiltWorkload& workload, const SiltParameters& parameters,
                        const SiltParticulars& particulars) {
  if (workload.history == SiltHistory::kUpdates) return workload.entries;
  return std::max(0.0, workload.entries -
                           parameters.instances * SiltLogStoreEntries(parameters, particulars) / 2);
}

HashStoreEntries ArrangeHashStores(const SiltWorkload& workload, const SiltParameters& parameters,
                                   const SiltParticulars& particulars) {
  const double d = parameters.merge_entries;
  const double instances = parameters.instances;
  if (!particulars.staggered_merges) return {.average = d * instances / 2, .peak = d * instances};
  if (workload.history == SiltHistory::kUpdates) {
    // Instance i (0 to P - 1) holds d * (i + x) / P entries. x rises from 0 to 1, and falls back to
    // 0 when the fullest instance merges.
    return {.average = d * instances / 2, .peak = d * (instances + 1) / 2};
  }
  // The same, but every instance grows by the factor g between two merges. So an instance that has
  // grown by g^u since its merge has the part 1 - g^-u of its entries in HashStores.
  const double entries = ConvertedEntries(workload, parameters, particulars);
  const double log_g = -std::log1p(-PartAdded(d, entries / instances));
  double kept = 0;  // the sum of g^-u for u = 1/P, 2/P, ..., 1
  const double step = std::exp(-log_g / instances);
  if (step < 1) kept = step * (1 - std::exp(-log_g)) / (1 - step);
  const double peak = entries * (1 - kept / instances);
  return {.average = std::max(peak / 2, peak - d / 2), .peak = peak};
}

namespace {

// Bytes that merges write for each entry put.
double MergeBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                  const SiltParticulars& particulars) {
  const double d = parameters.merge_entries;
  const double instances = parameters.instances;
  const double bytes = OrEntry(particulars.sorted_entry_bytes, workload);
  if (workload.history == SiltHistory::kUpdates) return workload.entries / (d * instances) * bytes;
  const double entries = ConvertedEntries(workload, parameters, particulars);
  const double store = SiltLogStoreEntries(parameters, particulars);
  const double part = PartAdded(d, entries / instances);
  // The index has grown in steps of the same size. A merge takes whole HashStores: at least one,
  // and on average a third of one more than d.
  constexpr int kSteps = 64;
  constexpr double kMoreThanD = 0.35;
  double merges = 0;  // merges of an entry
  for (int i = 0; i < kSteps; ++i) {
    const double instance_entries = entries * (i + 0.5) / kSteps / instances;
    const double added = std::max(store, part * instance_entries) + kMoreThanD * store;
    merges += added < instance_entries ? -1 / std::log1p(-added / instance_entries)
                                       : instance_entries / added;
  }
  return merges / kSteps * entries / workload.entries * bytes;
}

}  // namespace

double WrittenBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars) {
  const double store = SiltLogStoreEntries(parameters, particulars);
  const double instances = parameters.instances;
  const double converted = ConvertedEntries(workload, parameters, particulars) / workload.entries;
  const double stores =
      ArrangeHashStores(workload, parameters, particulars).average / store + instances;
  const double base = particulars.manifest_bytes +
                      particulars.manifest_partition_bytes * instances +
                      particulars.manifest_store_bytes * stores;
  // Each edit also brings the next base nearer (manifest_log.h).
  const double edit = particulars.manifest_edit_bytes *
                      (1 + base / std::max(particulars.manifest_edits_bytes, 2 * base));
  const double edits =
      1 / (store * particulars.conversions_per_manifest) + 1 / parameters.merge_entries;
  return LogFileBytes(workload, parameters, particulars) / store +
         converted * HashFileBytes(workload, parameters, particulars) / store +
         MergeBytes(workload, parameters, particulars) + converted * edit * edits;
}

}  // namespace siltfs
