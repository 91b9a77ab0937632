// The analytic model of SILT (Lim et al., SOSP 2011, section 5): the cost of a choice of parameters
// in writes, reads and memory, and the best choice within given limits. It is pure computation and
// measures nothing.
//
// The same model is used for the paper's implementation and for this one; they differ in
// SiltParticulars. With PaperParticulars() the predictions match equations 4 to 8 exactly.
//
// Like the paper, the model assumes that the number of distinct keys is constant and every put
// replaces one of them. While an index grows, a merge also writes the added entries: at most one
// more write per entry. Puts are spread evenly over the P instances.
//
// Thread-safety: functions only. Units: bytes, entries, seconds. Errors: kInvalidArgument for
// invalid arguments; kUnsupported if no choice keeps to the limits, with one sentence that names
// the violated limit.
#pragma once

#include <cstdint>

#include "store/base/result.h"

namespace siltfs {

// Table 4 of the paper, "workload characteristics".
struct SiltWorkload {
  double entries = 0;               // N, distinct keys
  double entry_bytes = 32;          // c, key and value
  double updates_per_second = 5e3;  // U
};

// Table 4 of the paper, "storage constraints".
struct SiltDevice {
  double flash_bytes = 0;      // F
  double erase_cycles = 10e3;  // E
};

// Table 4 of the paper, "SILT design parameters", except f and H, which follow from the others.
struct SiltParameters {
  double merge_entries = 0;   // d, entries of an instance's HashStores at which they are merged
  unsigned tag_bits = 15;     // k
  unsigned bucket_bits = 15;  // of a table, 4 places per bucket; k in the paper
  unsigned instances = 1;     // P, here called partitions
};

// Properties of an implementation.
struct SiltParticulars {
  double occupancy = 0.95;           // of a table that is frozen
  unsigned log_pointer_bits = 32;    // per place of a LogStore's table, besides the tag
  unsigned log_valid_bits = 1;       // per place of a LogStore's table
  unsigned hash_valid_bits = 1;      // per place of a HashStore's filter, besides the tag
  double sorted_bits_per_key = 3.0;  // of the SortedStore's trie: exact 3.0, weak 2.5, sparse 0.3
  double sorted_reads = 1;           // per lookup that reaches the SortedStore
  double tail_bytes = 2 * 4096;      // of a LogStore's buffer for pages not written yet
  double log_page_slots = 128;       // slots in a page of the log
  double log_page_entries = 127;     // entries in a page of the log
  unsigned conversions_at_once = 8;  // LogStores that still serve lookups while they are converted
  unsigned merges_at_once = 1;       // instances with both an old and a new SortedStore
  double merge_bytes = 1.5e6;        // memory of a running merge: sorting, read and write buffers
  // Instances merge in turn, so their HashStore entries are spread evenly between 0 and d.
  bool staggered_merges = true;
  // The range of parameters to choose from.
  unsigned min_tag_bits = 15;
  unsigned max_tag_bits = 15;
  unsigned min_bucket_bits = 8;
  unsigned max_bucket_bits = 15;
  bool buckets_follow_tags = false;  // if true, bucket_bits equals tag_bits
  unsigned max_instances = 1U << 16;
};

// The paper's particulars (the defaults are siltfs's): occupancy 0.93, 0.4 bytes per key for the
// SortedStore, no buffers, no extra memory while converting and merging, 2^k buckets.
SiltParticulars PaperParticulars();

struct SiltPrediction {
  double false_positive_rate = 0;  // f = 8 / 2^k, of one store
  double log_store_entries = 0;    // occupancy * 2^(bucket_bits + 2)
  double hash_stores = 0;          // H, an instance's average; equation 5
  double write_amplification = 0;  // equations 1 and 4
  double read_amplification = 0;   // equations 2 and 6: for a key in the SortedStore, or in no
                                   // store
  double average_hit_reads = 0;    // of a uniformly drawn key
  double memory_bytes = 0;         // average over time, all instances; equations 3 and 7
  double peak_memory_bytes = 0;
  double flash_bytes = 0;          // at the peak
  double device_life_seconds = 0;  // equation 8; infinite without updates
};

Result<SiltPrediction> PredictSilt(const SiltWorkload& workload, const SiltDevice& device,
                                   const SiltParameters& parameters,
                                   const SiltParticulars& particulars);

// Limits for the prediction.
struct SiltLimits {
  double memory_bytes = 0;  // at the peak
  double flash_bytes = 0;
  double write_amplification = 5.4;
  double read_amplification = 1.01;
};

enum class SiltPreference : uint8_t {
  kLeastMemory,  // the least memory that keeps to the limits
  kLeastWrites,  // the fewest writes; more memory, up to the limit, is used if it saves writes
};

struct SiltPlan {
  SiltParameters parameters;
  SiltPrediction prediction;
};

// Chooses, of the parameters that keep to the limits, those with the least peak memory or with the
// fewest writes. d is a multiple of a LogStore's entries, and P is a power of two.
Result<SiltPlan> ChooseSiltParameters(const SiltWorkload& workload, const SiltDevice& device,
                                      const SiltLimits& limits, const SiltParticulars& particulars,
                                      SiltPreference preference = SiltPreference::kLeastMemory);

}  // namespace siltfs
