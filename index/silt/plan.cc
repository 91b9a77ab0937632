#include "index/silt/plan.h"

#include <algorithm>
#include <cmath>

#include "index/silt/plan_writes.h"
#include "index/silt/run_filter.h"

namespace siltfs {
namespace {

constexpr double kWays = 4;
constexpr double kBitsPerByte = 8;
// Limit of tag_bits and bucket_bits. Up to this limit, a double counts places and entries exactly.
constexpr unsigned kMaxBits = 48;

Status Wrong(const char* cause) { return {StatusCode::kInvalidArgument, cause}; }

bool Positive(double number) { return std::isfinite(number) && number > 0; }

Status Check(const SiltWorkload& workload, const SiltDevice& device,
             const SiltParticulars& particulars) {
  if (!Positive(workload.entries)) return Wrong("there must be entries");
  if (!Positive(workload.entry_bytes)) return Wrong("an entry must have a size");
  if (!std::isfinite(workload.updates_per_second) || workload.updates_per_second < 0)
    return Wrong("the rate of updates must be 0 or more");
  if (!Positive(device.flash_bytes)) return Wrong("there must be flash");
  if (!Positive(device.erase_cycles)) return Wrong("the flash must have erase cycles");
  if (!Positive(particulars.occupancy) || particulars.occupancy > 1)
    return Wrong("the occupancy must be above 0, and 1 at most");
  return Status::Ok();
}

void PredictMemory(const SiltWorkload& workload, const SiltParameters& parameters,
                   const SiltParticulars& particulars, SiltPrediction& prediction) {
  const double k = parameters.tag_bits;
  const double instances = parameters.instances;
  const double log_table = SiltPlaces(parameters) *
                           (k + particulars.log_valid_bits + particulars.log_pointer_bits) /
                           kBitsPerByte;
  const double hash_bytes_per_entry = HashFilterBytes(workload, parameters, particulars) /
                                      SiltLogStoreEntries(parameters, particulars);
  const double sorted_bytes_per_key = particulars.sorted_bits_per_key / kBitsPerByte;
  const HashStoreEntries hash_stores = ArrangeHashStores(workload, parameters, particulars);
  const double store_entries = SiltLogStoreEntries(parameters, particulars);
  const auto component_stores = [&](double hash_entries) {
    return (hash_entries / store_entries + instances) * particulars.store_bytes;
  };
  prediction.hash_filter_bytes = hash_bytes_per_entry * hash_stores.average;
  prediction.sorted_index_bytes = sorted_bytes_per_key * workload.entries;
  const double always =
      instances * (log_table + particulars.tail_bytes) + prediction.sorted_index_bytes;
  prediction.memory_bytes =
      always + prediction.hash_filter_bytes + component_stores(hash_stores.average);

  const double converting = std::min<double>(particulars.conversions_at_once, instances);
  const double merging = std::min<double>(particulars.merges_at_once, instances);
  prediction.peak_memory_bytes =
      always + hash_bytes_per_entry * hash_stores.peak + component_stores(hash_stores.peak) +
      converting * log_table +
      merging * (sorted_bytes_per_key * workload.entries / instances + particulars.merge_bytes);
}

double PredictFlash(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars) {
  const double instances = parameters.instances;
  const double converting = std::min<double>(particulars.conversions_at_once, instances);
  const double merging = std::min<double>(particulars.merges_at_once, instances);
  const double hash_stores = ArrangeHashStores(workload, parameters, particulars).peak /
                             SiltLogStoreEntries(parameters, particulars);
  return workload.entries * (1 + merging / instances) *
             OrEntry(particulars.sorted_entry_bytes, workload) +
         (instances + converting) * LogFileBytes(workload, parameters, particulars) +
         hash_stores * HashFileBytes(workload, parameters, particulars);
}

// Returns the expected number of reads of the lookup of a uniformly drawn key that fail. The
// lookup of a key that is in a HashStore fails in the LogStore and, on average, in half of the
// HashStores. The LogStore is half full on average.
double ReadsWithoutTheKey(const SiltWorkload& workload, const SiltParameters& parameters,
                          const SiltPrediction& prediction) {
  const double instance_entries = workload.entries / parameters.instances;
  const double in_log = std::min(1.0, prediction.log_store_entries / 2 / instance_entries);
  const double in_hash = std::min(1 - in_log, parameters.merge_entries / 2 / instance_entries);
  return (1 - in_log) * prediction.false_positive_rate + (in_hash / 2 + (1 - in_log - in_hash)) *
                                                             prediction.hash_stores *
                                                             prediction.run_false_positive_rate;
}

}  // namespace

SiltParticulars PaperParticulars() {
  return {.occupancy = 0.93,
          .occupancy_per_bit = 0,
          .stash = 0,
          .log_pointer_bits = 32,
          .log_valid_bits = 1,
          .hash_valid_bits = 0,
          .sorted_bits_per_key = 3.2,
          .sorted_reads = 1,
          .tail_bytes = 0,
          .log_entry_bytes = 0,
          .hash_place_bytes = 0,
          .sorted_entry_bytes = 0,
          .log_file_bytes = 0,
          .hash_file_bytes = 0,
          .manifest_bytes = 0,
          .manifest_partition_bytes = 0,
          .manifest_store_bytes = 0,
          .manifest_edit_bytes = 0,
          .store_bytes = 0,
          .conversions_at_once = 0,
          .merges_at_once = 0,
          .merge_bytes = 0,
          .staggered_merges = true,
          .min_tag_bits = 8,
          .max_tag_bits = 20,
          .min_bucket_bits = 8,
          .max_bucket_bits = 20,
          .buckets_follow_tags = true,
          .max_instances = 1U << 16};
}

Result<SiltPrediction> PredictSilt(const SiltWorkload& workload, const SiltDevice& device,
                                   const SiltParameters& parameters,
                                   const SiltParticulars& particulars) {
  SILTFS_RETURN_IF_ERROR(Check(workload, device, particulars));
  if (!Positive(parameters.merge_entries)) return Wrong("d must be more than 0");
  if (parameters.instances == 0) return Wrong("P must be more than 0");
  if (parameters.tag_bits == 0 || parameters.tag_bits > kMaxBits ||
      parameters.bucket_bits > kMaxBits)
    return Wrong("tags must have from 1 to 48 bits, and buckets' numbers 48 at most");

  SiltPrediction prediction;
  prediction.false_positive_rate =
      2 * kWays * std::ldexp(1.0, -static_cast<int>(parameters.tag_bits));
  prediction.log_store_entries = SiltLogStoreEntries(parameters, particulars);
  prediction.hash_stores = HashStoresOfInstance(workload, parameters, particulars);
  prediction.run_false_positive_rate =
      particulars.sorted_runs
          ? RunFilterSlices::For(prediction.hash_stores,
                                 static_cast<uint64_t>(prediction.log_store_entries))
                .PassingShare()
          : prediction.false_positive_rate;
  prediction.written_bytes_per_put = WrittenBytes(workload, parameters, particulars);
  prediction.write_amplification = prediction.written_bytes_per_put / workload.entry_bytes;
  prediction.read_amplification = prediction.false_positive_rate +
                                  prediction.hash_stores * prediction.run_false_positive_rate +
                                  particulars.sorted_reads;
  prediction.average_hit_reads = 1 + ReadsWithoutTheKey(workload, parameters, prediction);
  PredictMemory(workload, parameters, particulars, prediction);
  prediction.flash_bytes = PredictFlash(workload, parameters, particulars);
  prediction.device_life_seconds = device.flash_bytes * device.erase_cycles /
                                   (workload.updates_per_second * prediction.written_bytes_per_put);
  return prediction;
}

double MergeEntriesOfShare(double share, const SiltWorkload& workload,
                           const SiltParameters& parameters, const SiltParticulars& particulars) {
  const double store = SiltLogStoreEntries(parameters, particulars);
  const double instances = parameters.instances;
  if (workload.history == SiltHistory::kUpdates) {
    // The entries in HashStores replace as many in SortedStores, which have all N.
    const double in_hash_stores = workload.entries * share / (1 - share);
    return std::max(store, 2 * in_hash_stores / (instances + 1));
  }
  const double entries = ConvertedEntries(workload, parameters, particulars);
  SiltParameters tried = parameters;
  double least = 0;
  double most = 1;  // of an instance's entries
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2;
    tried.merge_entries = middle * entries / instances;
    const bool more = ArrangeHashStores(workload, tried, particulars).peak < share * entries;
    (more ? least : most) = middle;
  }
  return std::max(store, least * entries / instances);
}

}  // namespace siltfs
