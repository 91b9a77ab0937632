#include "fs/fuse/kernel_readahead.h"

#include <fmt/format.h>

#include <fstream>

namespace siltfs::fuse {

std::string ReadaheadPath(uint64_t device) {
  return fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", device >> 32, device & 0xffff'ffff);
}

void RaiseKernelReadahead(uint64_t device, uint32_t bytes) {
  if (device == 0) return;
  const std::string path = ReadaheadPath(device);
  uint64_t kilobytes = 0;
  if (!(std::ifstream(path) >> kilobytes) || kilobytes >= bytes >> 10) return;
  std::ofstream(path) << (bytes >> 10) << std::flush;
}

}  // namespace siltfs::fuse
