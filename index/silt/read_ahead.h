// A single lookup in stores without filters in memory (SILT, section 4: right after opening, or
// when memory is short). It needs two pages of each of dozens of stores, newest first; here they
// are read in parallel and examined in order. The result is the same as with sequential reads, in
// the time of a few of them. Pages of stores older than the one with the name are read needlessly.
//
// When not to use it: for many lookups at once; they keep the device busy with reads that are all
// needed (RunLookups).
//
// Thread-safety: functions only.
#pragma once

#include "index/silt/lookup.h"

namespace siltfs {

// Finishes a lookup: through the reader if it may need several reads, else with one read after the
// other. An unreadable page fails the lookup only if the lookup needs it. Returns the number of
// pages read needlessly.
uint64_t FinishLookupAhead(Lookup& lookup, LookupReader& reader);

// Whether FinishLookupAhead is worth a reader; otherwise use FinishLookup.
bool WantsReadAhead(const PartitionVersion& version);

}  // namespace siltfs
