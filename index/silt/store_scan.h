// All live entries of a row of stores: every entry that a lookup would find, once.
#pragma once

#include <functional>

#include "index/silt/store_lookup.h"

namespace siltfs {

// Calls `visit` with each, in no order, and stops at its first failure. Entries of damaged pages
// are left out. Reads every log once, and an entry of a newer store wherever its tag is that of an
// older one. Thread-safety: the stores are only read. Memory: 4 bytes an entry of the largest
// store.
LookupsResult ScanStores(const StoreList& stores, uint64_t hash_secret,
                         const std::function<Status(const IndexEntry&)>& visit);

}  // namespace siltfs
