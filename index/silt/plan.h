// The analytic model of SILT (Lim et al., SOSP 2011, section 5): the cost of a choice of parameters
// in writes, reads and memory. It is pure computation and measures nothing. plan_choice.h chooses
// the best parameters within given limits.
//
// The same model is used for the paper's implementation and for this one; they differ in
// SiltParticulars. With PaperParticulars() the predictions match equations 4 to 8 exactly. Other
// particulars include what siltfs writes besides entries: headers, filters, indexes and manifests.
// plan_strategy.h has siltfs's particulars.
//
// Like the paper, the model assumes that the number of distinct keys is constant and every put
// replaces one of them (SiltHistory::kUpdates). Alternatively the index has grown from nothing by
// puts of new keys (kGrowth): most merges then wrote fewer entries than the index has at the end.
// Puts are spread evenly over the P instances, which merge in turn.
//
// Thread-safety: functions only. Units: bytes, entries, seconds. Errors: kInvalidArgument for
// invalid arguments.
#pragma once

#include <cstdint>

#include "store/base/result.h"

namespace siltfs {

enum class SiltHistory : uint8_t { kUpdates, kGrowth };

// Table 4 of the paper, "workload characteristics".
struct SiltWorkload {
  double entries = 0;               // N, distinct keys
  double entry_bytes = 32;          // c, key and value, as they are put
  double updates_per_second = 5e3;  // U
  SiltHistory history = SiltHistory::kUpdates;
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

// Properties of an implementation. The defaults are siltfs's with its default strategy.
struct SiltParticulars {
  // Of a table with 2^11 buckets that is frozen, without the stash; then for each further bit.
  double occupancy = 0.9636;
  double occupancy_per_bit = -0.0037;
  double stash = 8;
  unsigned log_pointer_bits = 32;  // per place of a LogStore's table, besides the tag
  unsigned log_valid_bits = 1;     // per place of a LogStore's table
  unsigned hash_valid_bits = 1;    // per place of a HashStore's filter, besides the tag
  // Sorted runs instead of HashStores (run_store.h); then the three fields about HashStores'
  // places and tags do not count, and the filter is that of run_filter.h.
  bool sorted_runs = false;
  double sorted_bits_per_key = 0.051;  // of the SortedStore's index in memory: page boundaries
  double sorted_reads = 1;             // per lookup that reaches the SortedStore
  double tail_bytes = 3 * 4096;        // of a LogStore's buffer for pages not written yet
  // --- What is written; 0: the size of an entry, as in the paper ---
  double log_entry_bytes = 4096.0 / 203;
  double hash_place_bytes = 4096.0 / 204 + 2;                   // a slot and its tag in the filter
  double sorted_entry_bytes = 4096 / 203.5 + 1.11 + 0.051 / 8;  // slot, filter slices, page index
  double run_entry_bytes = 0;     // with sorted runs: a slot and its part of the boundaries
  double log_file_bytes = 2048;   // half of the log's last page
  double hash_file_bytes = 2320;  // stash, footer, and half of the last page of a HashStore
  double manifest_bytes = 64;     // of a base, without partitions and stores
  double manifest_partition_bytes = 40;
  double manifest_store_bytes = 8;
  double manifest_edit_bytes = 512;      // of each conversion and each merge
  double manifest_edits_bytes = 65'536;  // of edits between two bases; at least two bases
  double conversions_per_manifest = 1;
  // --- Memory beside the tables, filters and indexes ---
  double store_bytes = 1024;         // of each HashStore and SortedStore
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
  unsigned max_instances = 1U << 12;
};

// The paper's particulars (the defaults are siltfs's): occupancy 0.93, 0.4 bytes per key for the
// SortedStore, no buffers, no extra memory while converting and merging, 2^k buckets.
SiltParticulars PaperParticulars();

struct SiltPrediction {
  double false_positive_rate = 0;      // f = 8 / 2^k, of one store; with sorted runs, of a LogStore
  double run_false_positive_rate = 0;  // of a HashStore or sorted run
  double log_store_entries = 0;        // occupancy * 2^(bucket_bits + 2)
  double hash_stores = 0;              // H, an instance's average; equation 5
  double hash_filter_bytes = 0;        // memory of the HashStores' filters, average over time
  double sorted_index_bytes = 0;       // memory of the SortedStores' indexes
  double written_bytes_per_put = 0;
  double write_amplification = 0;  // equations 1 and 4: bytes written per byte put
  double read_amplification = 0;   // equations 2 and 6: for a key in the SortedStore, or in no
                                   // store
  double average_hit_reads = 0;    // of a uniformly drawn key
  double memory_bytes = 0;         // average over time, all instances; equations 3 and 7
  double peak_memory_bytes = 0;
  double flash_bytes = 0;          // at the peak
  double device_life_seconds = 0;  // equation 8; infinite without updates
};

// Entries of a LogStore whose table is full.
double SiltLogStoreEntries(const SiltParameters& parameters, const SiltParticulars& particulars);

Result<SiltPrediction> PredictSilt(const SiltWorkload& workload, const SiltDevice& device,
                                   const SiltParameters& parameters,
                                   const SiltParticulars& particulars);

// The d with which HashStores hold the share `share` (above 0, below 1) of the entries in
// HashStores and SortedStores whenever an instance merges, as in siltfs.
double MergeEntriesOfShare(double share, const SiltWorkload& workload,
                           const SiltParameters& parameters, const SiltParticulars& particulars);

}  // namespace siltfs
