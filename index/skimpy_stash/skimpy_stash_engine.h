// SkimpyStash (Debnath, Sengupta, Li, "SkimpyStash: RAM Space Skimpy Key-Value Store on Flash-based
// Storage", SIGMOD 2011): a hash table in memory whose buckets are chains of records on flash. A
// bucket has k entries on average, so that an entry takes 4/k bytes of memory. The enhanced design
// gives each hash two buckets, and each bucket a count and a Bloom filter: 1 + 5/k bytes. A lookup
// follows a chain through the pages of a log. docs/engines.md has the costs.
//
// When to use it: where memory is short and hits are rare. A miss reads no page in the enhanced
// design, and a put writes its record once. `entries_per_bucket` trades memory for reads.
//
// When not to use it: if most lookups hit. A hit reads some k/2 pages, one after the other; SILT
// takes a similar amount of memory and reads one. The base design reads k pages for a miss.
//
// Minimum of memory: 1 MiB, one buffer (6 KiB by default), and the heads of the chains: 4/k bytes
// for each entry of a full partition, whatever the limit is. Counts and filters are dropped first.
#pragma once

#include <memory>

#include "index/flash/flash_partition.h"
#include "index/index_engine.h"
#include "index/skimpy_stash/chain_record.h"

namespace siltfs {

extern const IndexEngineRow kSkimpyStashEngine;

// For OpenFlashIndex (flash_index.h), with valid parameters of kSkimpyStashEngine.
std::unique_ptr<FlashEngine> MakeSkimpyStashEngine(const EngineParameters& parameters);
// The shape of an index with such parameters.
SkimpyStashShape SkimpyStashShapeOf(const EngineParameters& parameters);

}  // namespace siltfs
