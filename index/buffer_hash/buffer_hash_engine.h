// BufferHash (Anand, Muthukrishnan, Kappes, Akella, Nath, "Cheap and Large CAMs for High
// Performance Data-Intensive Networked Systems", NSDI 2010; described in "BloomStore", section II,
// and "Design Patterns for Tunable and Efficient SSD-based Indexes", sections 2.1 and 7): puts are
// collected in cuckoo tables in memory. A full table is written to flash as an incarnation, with
// one Bloom filter in memory. A lookup asks the filters, newest first, and reads one page of each
// incarnation whose filter lets the name pass. docs/engines.md has its costs.
//
// When to use it: where memory is plentiful and puts must be fast. An entry takes some 3 bytes of
// memory, and a put writes 70 to 100 bytes.
//
// When not to use it: if memory is short. Without filters a lookup reads one page of each
// incarnation, 16 in the worst case. SILT takes a tenth of the memory, and has one read per lookup.
//
// Minimum of memory: 1 MiB and one table (160 KiB by default).
#pragma once

#include <memory>

#include "index/flash/flash_partition.h"
#include "index/index_engine.h"

namespace siltfs {

extern const IndexEngineRow kBufferHashEngine;

// For OpenFlashIndex (flash_index.h), with valid parameters of kBufferHashEngine.
std::unique_ptr<FlashEngine> MakeBufferHashEngine(const EngineParameters& parameters);

}  // namespace siltfs
