// How far the kernel reads ahead of programs that read a file of the mount in order.
//
// What INIT agrees on cannot exceed what the kernel gives a new mount: 128 KiB. More is set in
// /sys/class/bdi/MAJOR:MINOR/read_ahead_kb, once INIT has been answered (the kernel takes the
// smaller value then), and by the superuser; where that fails it stays as it is, and the readahead
// of the chunk store is all there is. Files opened before keep what they have.
#pragma once

#include <cstdint>
#include <string>

namespace siltfs::fuse {

inline constexpr uint32_t kKernelReadaheadBytes = 1U << 20;

// Where the kernel keeps it for the device of a mount (DeviceOf).
std::string ReadaheadPath(uint64_t device);

// Raises what the kernel reads ahead to `bytes`; leaves it where it is as much or more, so that
// whoever has set it otherwise is not overruled.
void RaiseKernelReadahead(uint64_t device, uint32_t bytes);

}  // namespace siltfs::fuse
