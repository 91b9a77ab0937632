#include "index/silt/plan_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "index/flash/cuckoo_place.h"
#include "index/flash/log_page.h"
#include "index/flash/page_header.h"
#include "index/flash/slot.h"
#include "index/silt/merge_policy.h"

namespace siltfs {
namespace {

// Flash that a prediction of writes does not depend on.
constexpr double kAnyFlash = 1e15;

constexpr double kBitsPerByte = 8;
// In memory and on flash: page boundaries of a page (page_bounds.h), and a sparse trie of a key.
constexpr double kBoundsBits = 10.4;
constexpr double kTrieBitsOfKey = 0.28;
// Ending pages at bins leaves half a slot of each page empty.
constexpr double kSlotsLostToBins = 0.5;
// Footer, header of the filter, and 8 stashed entries with their places and slots.
constexpr double kHashFileBytes = 80 + 8 + 8 * 12;
constexpr double kStash = 8;
// Footer, headers of the filter and of the boundaries.
constexpr double kRunFileBytes = 80 + 16 + 31;

constexpr std::array kStrategies = {
    SiltStrategy{.name = "default", .named_slots = false, .tries = false, .sorted_runs = true},
    SiltStrategy{.name = "paper", .named_slots = true, .tries = true},
    SiltStrategy{.name = "named+bounds", .named_slots = true, .tries = false},
    SiltStrategy{.name = "hashed+tries", .named_slots = false, .tries = true},
    SiltStrategy{.name = "hashed+bounds", .named_slots = false, .tries = false},
    SiltStrategy{.name = "runs+bounds", .named_slots = false, .tries = false, .sorted_runs = true}};

}  // namespace

std::span<const SiltStrategy> SiltStrategies() { return kStrategies; }

std::string SiltStrategyNames() {
  std::string names;
  for (const SiltStrategy& strategy : kStrategies) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", strategy.name);
  }
  return names;
}

Result<SiltStrategy> FindSiltStrategy(std::string_view name) {
  for (const SiltStrategy& strategy : kStrategies) {
    if (strategy.name == name) return strategy;
  }
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("there is no strategy \"{}\" (there are: {})", name, SiltStrategyNames()));
}

SiltParticulars ParticularsOf(const SiltStrategy& strategy, bool sorted_filters) {
  const SlotLayout layout =
      strategy.named_slots ? SlotLayout::Named(SlotLayout::kLeastBits) : SlotLayout::Hashed();
  const auto slots = static_cast<double>(layout.slots_per_page());
  const double page = kPageSize + (strategy.named_slots ? kPageChecksumSize : 0);
  const double sorted_slots = strategy.tries ? slots : slots - kSlotsLostToBins;
  const double index_bits = strategy.tries ? kTrieBitsOfKey : kBoundsBits / sorted_slots;
  SiltParticulars particulars;
  particulars.sorted_bits_per_key = index_bits;
  particulars.log_entry_bytes = kPageSize / static_cast<double>(LogSlotsPerPage(layout));
  particulars.hash_place_bytes = page / slots + kPlaceTagBytes;
  particulars.sorted_entry_bytes =
      page / sorted_slots + (sorted_filters ? kSortedFilterBytes : 0) + index_bits / kBitsPerByte;
  particulars.log_file_bytes = kPageSize / 2.0;
  particulars.hash_file_bytes = kHashFileBytes + kStash * page / slots + page / 2;
  if (strategy.sorted_runs) {
    particulars.sorted_runs = true;
    particulars.run_entry_bytes = page / (slots - kSlotsLostToBins) + kBoundsBits / 8 / slots;
    particulars.hash_file_bytes = kRunFileBytes + page / 2;
  }
  return particulars;
}

double SiltCosts::peak_memory_bytes() const {
  return std::max(growth.peak_memory_bytes, updates.peak_memory_bytes);
}

Result<SiltCosts> PredictSiltIndex(const SiltShape& shape, const SiltParticulars& particulars) {
  const auto predict = [&](SiltHistory history) {
    const SiltWorkload workload{.entries = shape.entries, .history = history};
    SiltParameters parameters{.tag_bits = kTagBits,
                              .bucket_bits = shape.bucket_bits,
                              .instances = 1U << shape.partition_bits};
    parameters.merge_entries =
        MergeEntriesOfShare(shape.hash_store_share, workload, parameters, particulars);
    return PredictSilt(workload, {.flash_bytes = kAnyFlash}, parameters, particulars);
  };
  SiltCosts costs;
  SILTFS_ASSIGN_OR_RETURN(costs.growth, predict(SiltHistory::kGrowth));
  SILTFS_ASSIGN_OR_RETURN(costs.updates, predict(SiltHistory::kUpdates));
  return costs;
}

}  // namespace siltfs
