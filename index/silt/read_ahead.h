// Speeds up a single lookup in stores without filters in memory (SILT, section 4: right after
// opening, or when memory is short). The lookup needs two pages of each of dozens of stores, newest
// first. Here these pages are read in parallel and examined in order. The result is the same as
// with sequential reads, in the time of a few reads. Pages of stores older than the store with the
// name are read needlessly.
//
// Do not use it for many lookups at once. RunLookups keeps the device busy with reads that are all
// needed.
//
// Thread-safety: functions only.
#pragma once

#include "index/silt/lookup.h"

namespace siltfs {

// Finishes a lookup. It reads pages in parallel through the reader if the lookup may need several
// reads, else one after the other. An unreadable page fails the lookup only if the lookup needs it.
// Returns the number of pages read needlessly.
uint64_t FinishLookupAhead(Lookup& lookup, LookupReader& reader);

// Whether FinishLookupAhead is faster than FinishLookup, which needs no reader.
bool WantsReadAhead(const PartitionVersion& version);

}  // namespace siltfs
