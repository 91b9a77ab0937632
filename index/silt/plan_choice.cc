#include "index/silt/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "store/base/size_text.h"

namespace siltfs {
namespace {

// Limit of tag_bits and bucket_bits (plan.cc).
constexpr unsigned kMaxBits = 48;
// With more HashStores than this multiple of all entries, no fewer bytes are written.
constexpr double kMostParts = 1000;

Status Wrong(const char* cause) { return {StatusCode::kInvalidArgument, cause}; }
Status Impossible(std::string cause) { return {StatusCode::kUnsupported, std::move(cause)}; }

bool Positive(double number) { return std::isfinite(number) && number > 0; }

struct Search {
  const SiltWorkload& workload;
  const SiltDevice& device;
  const SiltLimits& limits;
  const SiltParticulars& particulars;
  SiltPreference preference;

  std::optional<SiltPlan> best = std::nullopt;
  // The least values found, for the message that names the violated limit.
  double least_writes = std::numeric_limits<double>::infinity();
  double least_reads = std::numeric_limits<double>::infinity();
  double least_flash = std::numeric_limits<double>::infinity();
  double least_memory = std::numeric_limits<double>::infinity();

  SiltPlan PlanOf(SiltParameters parameters, double hash_stores_to_merge) const;
  double LeastHashStores(const SiltParameters& parameters) const;
  bool KeepsToAll(const SiltPrediction& prediction) const;
  bool Better(const SiltPlan& plan) const;
  void Try(const SiltParameters& parameters);
  void Note(const SiltPrediction& prediction);
  Status WhyNot() const;
};

SiltPlan Search::PlanOf(SiltParameters parameters, double hash_stores_to_merge) const {
  parameters.merge_entries = hash_stores_to_merge * SiltLogStoreEntries(parameters, particulars);
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
  least_writes = std::min(least_writes, prediction.write_amplification);
  if (prediction.write_amplification > limits.write_amplification) return;
  least_reads = std::min(least_reads, prediction.read_amplification);
  if (prediction.read_amplification > limits.read_amplification) return;
  least_flash = std::min(least_flash, prediction.flash_bytes);
  if (prediction.flash_bytes > limits.flash_bytes) return;
  least_memory = std::min(least_memory, prediction.peak_memory_bytes);
}

// Returns the number of HashStores to merge, from which on fewer bytes than the limit are written;
// more than any number that makes sense if there is none.
double Search::LeastHashStores(const SiltParameters& parameters) const {
  const auto writes = [&](double stores) {
    return PlanOf(parameters, stores).prediction.write_amplification;
  };
  double most = 1;
  while (writes(most) > limits.write_amplification) {
    // Manifests grow with the number of HashStores, so the writes may rise again.
    if (most * SiltLogStoreEntries(parameters, particulars) * parameters.instances >
        kMostParts * workload.entries)
      return most;
    most *= 2;
  }
  double least = std::floor(most / 2);  // too few, or 0
  while (most - least > 1) {
    const double middle = std::floor((least + most) / 2);
    (writes(middle) > limits.write_amplification ? least : most) = middle;
  }
  return most;
}

// Chooses d for these k, buckets and P. A greater d causes fewer writes, but takes more reads,
// flash and memory. So the smallest d within the limit of writes is best for reads, flash and
// memory. The largest d within the other limits writes least.
void Search::Try(const SiltParameters& parameters) {
  const double stores = LeastHashStores(parameters);
  SiltPlan plan = PlanOf(parameters, stores);
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
  if (least_writes > limits.write_amplification) {
    return Impossible(fmt::format("no parameters reach a write amplification of {:.6g}",
                                  limits.write_amplification));
  }
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

Result<SiltPlan> ChooseSiltParameters(const SiltWorkload& workload, const SiltDevice& device,
                                      const SiltLimits& limits, const SiltParticulars& particulars,
                                      SiltPreference preference) {
  // The prediction checks the arguments that do not depend on the choice.
  SILTFS_RETURN_IF_ERROR(PredictSilt(workload, device, {.merge_entries = 1}, particulars).status());
  const bool sensible = limits.memory_bytes >= 0 && limits.flash_bytes >= 0 &&
                        std::isfinite(limits.memory_bytes) && std::isfinite(limits.flash_bytes) &&
                        Positive(limits.write_amplification) && Positive(limits.read_amplification);
  if (!sensible) return Wrong("limits must be numbers");
  if (particulars.min_tag_bits < 1 || particulars.max_tag_bits > kMaxBits ||
      particulars.max_bucket_bits > kMaxBits)
    return Wrong("tags must have from 1 to 48 bits, and buckets' numbers 48 at most");
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
