// Sets how far the kernel reads ahead of programs that read a file of the mount sequentially.
//
// INIT cannot raise the limit above the kernel's default for a new mount, 128 KiB. A larger value
// is set in /sys/class/bdi/MAJOR:MINOR/read_ahead_kb. Only the superuser can do that, and only
// after INIT was answered, because the answer lowers a larger value again. If setting it fails, the
// limit stays, and only the chunk store reads further ahead. Files that were opened earlier keep
// their limit.
#pragma once

#include <cstdint>
#include <string>

namespace siltfs::fuse {

inline constexpr uint32_t kKernelReadaheadBytes = 1U << 20;

// The kernel's setting for the device of a mount (DeviceOf).
std::string ReadaheadPath(uint64_t device);

// Raises the kernel's readahead to `bytes`. Keeps a setting that is as large or larger, so that an
// administrator's choice is not overruled.
void RaiseKernelReadahead(uint64_t device, uint32_t bytes);

}  // namespace siltfs::fuse
