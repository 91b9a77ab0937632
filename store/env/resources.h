// What this process takes of the machine, and what machine it is.
//
// Thread-safety: any; the peak is the whole process's, and so is its reset. Units: bytes.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/result.h"

namespace siltfs {

// All resident pages, whatever holds them. Exact.
Result<uint64_t> ResidentBytes();
// The most that were resident since the process began or the last reset. The kernel counts it in
// steps, so it may be some hundred KiB below what ResidentBytes has said.
Result<uint64_t> PeakResidentBytes();
// kUnsupported where the kernel does not let it.
Status ResetPeakResidentBytes();

// Writes back what is dirty and empties the machine's page cache, names and inodes included.
// kNotPermitted for others than root.
Status DropPageCache();

// All memory of the machine; 0 where the system does not tell. A limit for this process or its
// container is not seen.
uint64_t PhysicalMemoryBytes();

// The processor as the system names it; "unknown" if it does not.
std::string ProcessorName();

}  // namespace siltfs
