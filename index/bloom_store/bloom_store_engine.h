// BloomStore (Lu, Nam, Du, "BloomStore: Bloom-Filter based Memory-efficient Key-Value Store for
// Indexing of Data Deduplication on Flash", MSST 2012, section III): each partition collects puts
// in a page in memory, and appends full pages to flash. A Bloom filter of each page joins a chain
// of filters, which is also on flash. A lookup reads one page of the chain, and then the data pages
// whose filters let the name pass, the newest first. docs/engines.md has its costs.
//
// When to use it: where memory is short and names are mostly found. Without its chains and the
// prefilter in memory, an entry takes 0.3 to 0.7 bytes.
//
// When not to use it: if most names are absent, and memory is too short for the prefilter; each
// such lookup then takes two reads. SILT takes one read for a name that is found, and fewer for
// others.
//
// Minimum of memory: 1 MiB and one buffer (4.3 KiB).
#pragma once

#include <memory>

#include "index/flash/flash_partition.h"
#include "index/index_engine.h"

namespace siltfs {

extern const IndexEngineRow kBloomStoreEngine;

// For OpenFlashIndex (flash_index.h), with valid parameters of kBloomStoreEngine.
std::unique_ptr<FlashEngine> MakeBloomStoreEngine(const EngineParameters& parameters);

}  // namespace siltfs
