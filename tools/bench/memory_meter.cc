#include "tools/bench/memory_meter.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace siltfs {
namespace {

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  const std::string key = "VmHWM:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size())) * 1024;
  }
  return 0;
}

bool ResetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace

MemoryMeter::MemoryMeter() : baseline_(ResidentBytes()) { ResetPeak(); }

uint64_t MemoryMeter::Growth() const {
  const uint64_t now = ResidentBytes();
  return now - std::min(now, baseline_);
}

uint64_t MemoryMeter::PeakGrowth() {
  const uint64_t peak = PeakResidentBytes();
  if (!ResetPeak()) return Growth();
  return std::max(peak - std::min(peak, baseline_), Growth());
}

}  // namespace siltfs
