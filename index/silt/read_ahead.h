// A single lookup in stores whose filters are not in memory (SILT, section 4: right after opening,
// or for want of memory). It needs two pages of each of dozens of stores, newest first; here they
// are read side by side, and looked at in their order. So the lookup ends as it would have with one
// read after the other, in the time of a few of them; what is read of stores older than the one
// that has the name is read in vain.
//
// When not to use it: for many lookups at once, which keep the device busy with what each is sure
// to need (RunLookups).
//
// Thread-safety: functions only.
#pragma once

#include "index/silt/lookup.h"

namespace siltfs {

// Ends a lookup with reads through the reader where several are to come, else with one read after
// the other. A page that can't be read fails the lookup only if it comes to need it. Returns how
// many pages were read in vain.
uint64_t FinishLookupAhead(Lookup& lookup, LookupReader& reader);

// Whether FinishLookupAhead is worth a reader: else it is FinishLookup.
bool WantsReadAhead(const PartitionVersion& version);

}  // namespace siltfs
