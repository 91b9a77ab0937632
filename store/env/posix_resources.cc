#include <unistd.h>

#include <fstream>
#include <optional>

#include "store/env/resources.h"

namespace siltfs {
namespace {

// The value of the first line "KEY<blanks>:<blanks>VALUE" in a file.
std::optional<std::string> FindLine(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  if (!(statm >> total >> resident)) {
    return Status(StatusCode::kUnsupported, "does not say how much memory is resident")
        .At("/proc/self/statm");
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Result<uint64_t> PeakResidentBytes() {
  constexpr const char* kPath = "/proc/self/status";
  const auto kibibytes = FindLine(kPath, "VmHWM");
  if (!kibibytes) {
    return Status(StatusCode::kUnsupported, "does not say how much memory was resident").At(kPath);
  }
  return std::stoull(*kibibytes) * 1024;
}

Status ResetPeakResidentBytes() {
  constexpr const char* kPath = "/proc/self/clear_refs";
  std::ofstream clear(kPath);
  clear << "5" << std::flush;  // proc(5)
  if (clear.good()) return Status::Ok();
  return Status(StatusCode::kUnsupported, "can't be written").At(kPath);
}

Status DropPageCache() {
  constexpr const char* kPath = "/proc/sys/vm/drop_caches";
  sync();
  std::ofstream drop(kPath);
  drop << "3" << std::flush;  // proc(5)
  if (drop.good()) return Status::Ok();
  return Status(StatusCode::kNotPermitted, "can't be written").At(kPath);
}

uint64_t PhysicalMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages < 0 ? 0
                   : static_cast<uint64_t>(pages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string ProcessorName() { return FindLine("/proc/cpuinfo", "model name").value_or("unknown"); }

}  // namespace siltfs
