// Resource use of this process, and properties of the machine.
//
// Thread-safety: any thread; the peak and its reset concern the whole process. Units: bytes.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/result.h"

namespace siltfs {

// The bytes of all resident pages of any kind. Exact.
Result<uint64_t> ResidentBytes();
// The maximum resident size since the process started or the last reset. The kernel updates it in
// steps, so it may be some hundred KiB below a result of ResidentBytes.
Result<uint64_t> PeakResidentBytes();
// Resets this maximum. kUnsupported if the kernel refuses.
Status ResetPeakResidentBytes();

// Writes back dirty pages and empties the page cache, including names and inodes. kNotPermitted for
// users other than root.
Status DropPageCache();

// The machine's memory; 0 if unknown. Ignores limits of this process or its container.
uint64_t PhysicalMemoryBytes();

// The system's name of the processor, or "unknown".
std::string ProcessorName();

}  // namespace siltfs
