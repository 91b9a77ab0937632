// Parts of the model in plan.h: entries in HashStores, and bytes written. The arguments have been
// checked. Functions only, safe to call from any thread. Units: bytes, entries.
#pragma once

#include "index/silt/plan.h"

namespace siltfs {

double SiltPlaces(const SiltParameters& parameters);

// `bytes`, or the size of an entry if it is 0.
double OrEntry(double bytes, const SiltWorkload& workload);

// Bytes of the log and of the HashStore of one LogStore.
double LogFileBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars);
// The average number of HashStores of an instance; H in the paper.
double HashStoresOfInstance(const SiltWorkload& workload, const SiltParameters& parameters,
                            const SiltParticulars& particulars);
// Memory of the filter of one HashStore or sorted run.
double HashFilterBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                       const SiltParticulars& particulars);
double HashFileBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                     const SiltParticulars& particulars);

// Entries that have left the active LogStores, which are half full on average.
double ConvertedEntries(const SiltWorkload& workload, const SiltParameters& parameters,
                        const SiltParticulars& particulars);

// Entries in the HashStores of all instances.
struct HashStoreEntries {
  double average = 0;
  double peak = 0;
};
HashStoreEntries ArrangeHashStores(const SiltWorkload& workload, const SiltParameters& parameters,
                                   const SiltParticulars& particulars);

// For each put.
double WrittenBytes(const SiltWorkload& workload, const SiltParameters& parameters,
                    const SiltParticulars& particulars);

}  // namespace siltfs
