// siltfs's strategies for slots and SortedStores, as the model in plan.h and engine parameters
// describe them, and predictions for an index as siltfs runs it.
//
// Thread-safety: functions and plain values only. Units: bytes, entries.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "index/silt/plan.h"
#include "store/base/engine_parameter.h"

namespace siltfs {

struct SiltStrategy {
  std::string_view name;
  bool named_slots = false;  // 32 bytes with the name, instead of 20 with its hash
  bool tries = false;        // instead of page boundaries
  bool sorted_runs = false;  // instead of HashStores
};

// The default first. Engine parameters cannot choose "named+bounds": named slots always have tries.
// "runs+bounds" is another name of the default.
std::span<const SiltStrategy> SiltStrategies();
std::string SiltStrategyNames();  // separated by commas
// kInvalidArgument, with the names of all strategies, if there is none of this name.
Result<SiltStrategy> FindSiltStrategy(std::string_view name);

// `sorted_filters`: whether merges write filters of SortedStores, as they do if memory has room.
SiltParticulars ParticularsOf(const SiltStrategy& strategy, bool sorted_filters = true);

struct SiltShape {
  double entries = 0;
  unsigned partition_bits = 0;
  unsigned bucket_bits = 0;
  double hash_store_share = 0;
};

// The costs of an index of this shape, both after growth and under updates.
struct SiltCosts {
  SiltPrediction growth;
  SiltPrediction updates;
  double peak_memory_bytes() const;
};
Result<SiltCosts> PredictSiltIndex(const SiltShape& shape, const SiltParticulars& particulars);

}  // namespace siltfs
