#include "index/silt/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "store/base/size_text.h"

namespace siltfs {
namespace {

constexpr double kWays = 4;
constexpr double kBitsPerByte = 8;
// Limit of tag_bits and bucket_bits. Up to this limit, a double counts places and entries exactly.
constexpr unsigned kMaxBits = 48;

Status Wrong(const char* cause) { return {StatusCode::kInvalidArgument, cause}; }
Status Impossible(std::string cause) { return {StatusCode::kUnsupported, std::move(cause)}; }

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
  if (!Positive(particulars.log_page_entries) ||
      particulars.log_page_entries > particulars.log_page_slots)
    return Wrong("a page of the log must hold from 1 to all of its slots");
  return Status::Ok();
}

double Places(const SiltParameters& parameters) {
  return kWays * std::ldexp(1.0, static_cast<int>(parameters.bucket_bits));
}

double LogStoreEntries(const SiltParameters& parameters, const SiltParticulars& particulars) {
  return particulars.occupancy * Places(parameters);
}

// Writes of an entry before it is merged: once to the log, where pages have headers, and once to a
// HashStore, where some places stay empty.
double WritesBeforeMerge(const SiltParticulars& particulars) {
  return particulars.log_page_slots / particulars.log_page_entries + 1 / particulars.occupancy;
}

// Entries in the HashStores of all instances.
struct HashStoreEntries {
  double average = 0;
  double peak = 0;
};

HashStoreEntries Arrange(const SiltParameters& parameters, const SiltParticulars& particulars) {
  const double d = parameters.merge_entries;
  const double instances = parameters.instances;
  // With staggered merges, instance i (0 to P - 1) holds d * (i + x) / P entries. x rises from 0 to
  // 1, and falls back to 0 when the fullest instance merges.
  const double peak = particulars.staggered_merges ? d * (instances + 1) / 2 : d * instances;
  return {.average = d * instances / 2, .peak = peak};
}

void PredictMemory(const SiltWorkload& workload, const SiltParameters& parameters,
                   const SiltParticulars& particulars, SiltPrediction& prediction) {
  const double k = parameters.tag_bits;
  const double instances = parameters.instances;
  const double log_table = Places(parameters) *
                           (k + particulars.log_valid_bits + particulars.log_pointer_bits) /
                           kBitsPerByte;
  const double hash_bytes_per_entry =
      (k + particulars.hash_valid_bits) / kBitsPerByte / particulars.occupancy;
  const double sorted_bytes_per_key = particulars.sorted_bits_per_key / kBitsPerByte;
  const HashStoreEntries hash_stores = Arrange(parameters, particulars);
  const double always =
      instances * (log_table + particulars.tail_bytes) + sorted_bytes_per_key * workload.entries;
  prediction.memory_bytes = always + hash_bytes_per_entry * hash_stores.average;

  const double converting = std::min<double>(particulars.conversions_at_once, instances);
  const double merging = std::min<double>(particulars.merges_at_once, instances);
  prediction.peak_memory_bytes =
      always + hash_bytes_per_entry * hash_stores.peak + converting * log_table +
      merging * (sorted_bytes_per_key * workload.entries / instances + particulars.merge_bytes);
}

double PredictFlash(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars) {
  const double instances = parameters.instances;
  const double log_entries = LogStoreEntries(parameters, particulars) * particulars.log_page_slots /
                             particulars.log_page_entries;
  const double converting = std::min<double>(particulars.conversions_at_once, instances);
  const double merging = std::min<double>(particulars.merges_at_once, instances);
  const double entries = workload.entries * (1 + merging / instances) +
                         (instances + converting) * log_entries +
                         Arrange(parameters, particulars).peak / particulars.occupancy;
  return entries * workload.entry_bytes;
}

// Returns the expected number of stores in which the lookup of a uniformly drawn key fails. The
// lookup of a key that is in a HashStore fails in the LogStore and, on average, in half of the
// HashStores. The LogStore is half full on average.
double StoresWithoutTheKey(const SiltWorkload& workload, const SiltParameters& parameters,
                           const SiltPrediction& prediction) {
  const double instance_entries = workload.entries / parameters.instances;
  const double in_log = std::min(1.0, prediction.log_store_entries / 2 / instance_entries);
  const double in_hash = std::min(1 - in_log, parameters.merge_entries / 2 / instance_entries);
  return in_hash * (1 + prediction.hash_stores / 2) +
         (1 - in_log - in_hash) * (1 + prediction.hash_stores);
}

// --- The choice ---

struct Search {
  const SiltWorkload& workload;
  const SiltDevice& device;
  const SiltLimits& limits;
  const SiltParticulars& particulars;
  SiltPreference preference;

  std::optional<SiltPlan> best = std::nullopt;
  // The least values found, for the message that names the violated limit.
  double least_reads = std::numeric_limits<double>::infinity();
  double least_flash = std::numeric_limits<double>::infinity();
  double least_memory = std::numeric_limits<double>::infinity();

  SiltPlan PlanOf(SiltParameters parameters, double hash_stores_to_merge) const;
  bool KeepsToAll(const SiltPrediction& prediction) const;
  bool Better(const SiltPlan& plan) const;
  void Try(const SiltParameters& parameters);
  void Note(const SiltPrediction& prediction);
  Status WhyNot() const;
};

SiltPlan Search::PlanOf(SiltParameters parameters, double hash_stores_to_merge) const {
  parameters.merge_entries = hash_stores_to_merge * LogStoreEntries(parameters, particulars);
  // The arguments have been checked.
  return {parameters, PredictSilt(workload, device, parameters, particulars).value()};
}

bool Search::KeepsToAll(const SiltPrediction& prediction) const {
  return prediction.write_amplification <= limits.write_amplification &&
         prediction.read_amplification <= limits.read_amplification &&
         prediction.flash_bytes <= limits.flash_bytes &&
         prediction.peak_memory_bytes <= limits.memory_bytes;
}

bool Search::Better(const SiltPlan& plan) const {
  if (!best) return true;
  const SiltPrediction& a = plan.prediction;
  const SiltPrediction& b = best->prediction;
  return preference == SiltPreference::kLeastMemory ? a.peak_memory_bytes < b.peak_memory_bytes
                                                    : a.write_amplification < b.write_amplification;
}

void Search::Note(const SiltPrediction& prediction) {
  least_reads = std::min(least_reads, prediction.read_amplification);
  if (prediction.read_amplification > limits.read_amplification) return;
  least_flash = std::min(least_flash, prediction.flash_bytes);
  if (prediction.flash_bytes > limits.flash_bytes) return;
  least_memory = std::min(least_memory, prediction.peak_memory_bytes);
}

// Chooses d for these k, buckets and P. A greater d causes fewer writes, but takes more reads,
// flash and memory. So the smallest d within the limit of writes is best for reads, flash and
// memory. The largest d within the other limits writes least.
void Search::Try(const SiltParameters& parameters) {
  const double merge_writes = limits.write_amplification - WritesBeforeMerge(particulars);
  const double least_entries = workload.entries / parameters.instances / merge_writes;
  double stores =
      std::max(1.0, std::ceil(least_entries / LogStoreEntries(parameters, particulars)));
  SiltPlan plan = PlanOf(parameters, stores);
  if (plan.prediction.write_amplification > limits.write_amplification) {  // only rounding causes
                                                                           // this
    plan = PlanOf(parameters, ++stores);
  }
  Note(plan.prediction);
  if (!KeepsToAll(plan.prediction)) return;
  if (preference == SiltPreference::kLeastWrites) {
    double good = stores;
    double step = 1;
    while (KeepsToAll(PlanOf(parameters, good + step).prediction)) {
      good += step;
      step *= 2;
    }
    for (; step >= 1; step = std::floor(step / 2)) {
      if (KeepsToAll(PlanOf(parameters, good + step).prediction)) good += step;
    }
    plan = PlanOf(parameters, good);
  }
  if (Better(plan)) best = plan;
}

// Returns a text like "3.1 GiB, more than the 3.0 GiB", with enough decimals to distinguish the
// two.
std::string MoreThan(double needed, double limit) {
  constexpr int kMostDecimals = 9;
  int decimals = 1;
  while (decimals < kMostDecimals && FormatSize(needed, decimals) == FormatSize(limit, decimals))
    ++decimals;
  return fmt::format("{}, more than the {}", FormatSize(needed, decimals),
                     FormatSize(limit, decimals));
}

Status Search::WhyNot() const {
  if (least_reads > limits.read_amplification) {
    return Impossible(
        fmt::format("no parameters reach a read amplification of {:.6g} with a write amplification "
                    "of {:.6g}; {:.6g} is the least",
                    limits.read_amplification, limits.write_amplification, least_reads));
  }
  if (least_flash > limits.flash_bytes) {
    return Impossible(fmt::format("{:.0f} entries need at least {} of flash", workload.entries,
                                  MoreThan(least_flash, limits.flash_bytes)));
  }
  return Impossible(fmt::format(
      "with a write amplification of {:.6g}, a read amplification of {:.6g} and {} of flash, "
      "{:.0f} entries need at least {} of memory",
      limits.write_amplification, limits.read_amplification, FormatSize(limits.flash_bytes, 1),
      workload.entries, MoreThan(least_memory, limits.memory_bytes)));
}

}  // namespace

SiltParticulars PaperParticulars() {
  return {.occupancy = 0.93,
          .log_pointer_bits = 32,
          .log_valid_bits = 1,
          .hash_valid_bits = 0,
          .sorted_bits_per_key = 3.2,
          .sorted_reads = 1,
          .tail_bytes = 0,
          .log_page_slots = 1,
          .log_page_entries = 1,
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
  prediction.log_store_entries = LogStoreEntries(parameters, particulars);
  prediction.hash_stores = parameters.merge_entries / 2 / prediction.log_store_entries;
  prediction.write_amplification =
      WritesBeforeMerge(particulars) +
      workload.entries / (parameters.merge_entries * parameters.instances);
  prediction.read_amplification =
      (1 + prediction.hash_stores) * prediction.false_positive_rate + particulars.sorted_reads;
  prediction.average_hit_reads =
      1 + StoresWithoutTheKey(workload, parameters, prediction) * prediction.false_positive_rate;
  PredictMemory(workload, parameters, particulars, prediction);
  prediction.flash_bytes = PredictFlash(workload, parameters, particulars);
  prediction.device_life_seconds =
      device.flash_bytes * device.erase_cycles /
      (workload.updates_per_second * workload.entry_bytes * prediction.write_amplification);
  return prediction;
}

Result<SiltPlan> ChooseSiltParameters(const SiltWorkload& workload, const SiltDevice& device,
                                      const SiltLimits& limits, const SiltParticulars& particulars,
                                      SiltPreference preference) {
  SILTFS_RETURN_IF_ERROR(Check(workload, device, particulars));
  const bool sensible = limits.memory_bytes >= 0 && limits.flash_bytes >= 0 &&
                        std::isfinite(limits.memory_bytes) && std::isfinite(limits.flash_bytes) &&
                        Positive(limits.write_amplification) && Positive(limits.read_amplification);
  if (!sensible) return Wrong("limits must be numbers");
  if (particulars.min_tag_bits < 1 || particulars.max_tag_bits > kMaxBits ||
      particulars.max_bucket_bits > kMaxBits)
    return Wrong("tags must have from 1 to 48 bits, and buckets' numbers 48 at most");
  if (limits.write_amplification <= WritesBeforeMerge(particulars)) {
    return Impossible(
        fmt::format("a write amplification of {:.6g} is impossible: the log and its conversion "
                    "alone make {:.6g}",
                    limits.write_amplification, WritesBeforeMerge(particulars)));
  }
  Search search{workload, device, limits, particulars, preference};
  for (unsigned k = particulars.min_tag_bits; k <= particulars.max_tag_bits; ++k) {
    const unsigned least = particulars.buckets_follow_tags ? k : particulars.min_bucket_bits;
    const unsigned most =
        particulars.buckets_follow_tags ? k : std::min(k, particulars.max_bucket_bits);
    for (unsigned buckets = least; buckets <= most; ++buckets) {
      for (uint64_t instances = 1; instances <= particulars.max_instances; instances *= 2) {
        search.Try(
            {.tag_bits = k, .bucket_bits = buckets, .instances = static_cast<unsigned>(instances)});
      }
    }
  }
  if (search.best) return *search.best;
  return search.WhyNot();
}

}  // namespace siltfs
