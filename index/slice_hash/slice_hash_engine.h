// SliceHash (Anand, Gember-Jacobson, Engstrom, Akella, "Design Patterns for Tunable and Efficient
// SSD-based Indexes", ANCS 2014, sections 5 and 7): puts are collected in cuckoo tables in memory.
// The tables that a partition has written, its incarnations, are together in one slicetable, in
// which each page has one bucket of all of them. So a lookup reads one page of flash, or two, and
// needs no filters. docs/engines.md has its costs.
//
// When to use it: if memory is short, lookups are many and puts are few. An entry takes less than a
// byte of memory.
//
// When not to use it: if puts must be fast or the device must not wear out. A flush writes the
// whole slicetable, some 700 bytes for each entry put with the default parameters. Not with a
// memory limit below that of the buffers either: each buffer that is flushed early writes a
// slicetable.
//
// Minimum of memory: 1 MiB, and the slicetable that is being written (10 MiB by default), which is
// in memory during a flush only.
#pragma once

#include <memory>

#include "index/flash/flash_partition.h"
#include "index/index_engine.h"

namespace siltfs {

extern const IndexEngineRow kSliceHashEngine;

// For OpenFlashIndex (flash_index.h), with valid parameters of kSliceHashEngine.
std::unique_ptr<FlashEngine> MakeSliceHashEngine(const EngineParameters& parameters);

}  // namespace siltfs
