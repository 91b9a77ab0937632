#include "tests/crash/block/lower_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "store/base/bytes.h"
#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/process.h"

namespace siltfs::blocktest {
namespace {

using killtest::Failure;
using killtest::SystemFailure;

constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

std::string NameOf(LowerKind kind) {
  return kind == LowerKind::kExt4 ? "ext4" : kind == LowerKind::kXfs ? "xfs" : "btrfs";
}

uint64_t DiskBytesFor(LowerKind kind) {
  return (kind == LowerKind::kXfs ? uint64_t{320} : uint64_t{256}) << 20;
}

uint64_t TearBytesFor(LowerKind kind) { return kind == LowerKind::kBtrfs ? 4096 : 512; }

LoopDevice::LoopDevice(const std::string& file) {
  // With direct I/O the loop device caches nothing. If the kernel refuses direct I/O here, the
  // direct_io flag of the FUSE file has the same effect.
  Descriptor backing(open(file.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  if (!backing.valid()) backing = Descriptor(open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!backing.valid()) throw SystemFailure("open " + file);
  const Descriptor control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) throw SystemFailure("open /dev/loop-control");
  for (int attempt = 0; attempt < 50; ++attempt) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) throw SystemFailure("find a free loop device");
    path_ = fmt::format("/dev/loop{}", number);
    device_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!device_.valid()) throw SystemFailure("open " + path_);
    loop_config config{};
    config.fd = static_cast<uint32_t>(backing.get());
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    if (ioctl(device_.get(), LOOP_CONFIGURE, &config) == 0) return;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (errno == EINVAL && ioctl(device_.get(), LOOP_CONFIGURE, &config) == 0) return;
    if (errno != EBUSY) throw SystemFailure("set up " + path_);
    device_.Reset();  // another process has taken this loop device
    std::this_thread::sleep_for(kPause);
  }
  throw Failure("no loop device is free");
}

LoopDevice::~LoopDevice() {
  if (device_.valid()) ioctl(device_.get(), LOOP_CLR_FD);
}

LowerMount::LowerMount(LowerKind kind, const std::string& device, std::string directory)
    : directory_(std::move(directory)) {
  if (mount(device.c_str(), directory_.c_str(), NameOf(kind).c_str(), 0, nullptr) != 0) {
    throw LowerFailure(fmt::format("{} cannot be mounted: {}", NameOf(kind), std::strerror(errno)));
  }
  mounted_ = true;
}

LowerMount::~LowerMount() {
  if (!mounted_) return;
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (umount2(directory_.c_str(), 0) == 0) return;
    std::this_thread::sleep_for(kPause);
  }
  umount2(directory_.c_str(), MNT_DETACH);
}

void LowerMount::Unmount() {
  for (int attempt = 0; umount2(directory_.c_str(), 0) != 0; ++attempt) {
    if (errno != EBUSY || attempt == 250) throw SystemFailure("unmount " + directory_);
    std::this_thread::sleep_for(kPause);
  }
  mounted_ = false;
}

void LowerMount::Sync() const {
  const Descriptor root(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.valid()) (void)syncfs(root.get());  // it may fail on a broken disk
}

void MakeLower(LowerKind kind, const std::string& device, const std::string& scratch) {
  std::vector<std::string> command{"mkfs." + NameOf(kind), "-q"};
  if (kind == LowerKind::kExt4) {
    command.insert(command.end(), {"-F", "-b", "4096"});
  } else {
    command.emplace_back("-f");
  }
  command.push_back(device);
  const killtest::Ended ended = killtest::Run(command, scratch);
  if (ended.code == 0) return;
  throw Failure(fmt::format("{}: exit code {}: {}", command[0], ended.code, ended.errors));
}

std::vector<std::pair<uint64_t, uint64_t>> ExtentsOf(const std::string& path) {
  constexpr uint32_t kMost = 64;
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  std::error_code gone;  // files may be created and removed while this function runs
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path, gone)) {
    for (auto it = std::filesystem::recursive_directory_iterator(path, gone);
         it != std::filesystem::recursive_directory_iterator(); it.increment(gone)) {
      if (it->is_regular_file(gone)) files.push_back(it->path());
    }
  } else {
    files.push_back(path);
  }
  alignas(fiemap) std::array<uint8_t, sizeof(fiemap) + kMost * sizeof(fiemap_extent)> buffer;
  for (const std::string& name : files) {
    const Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) continue;
    buffer.fill(0);
    auto* const map = reinterpret_cast<fiemap*>(buffer.data());
    map->fm_length = FIEMAP_MAX_OFFSET;
    map->fm_extent_count = kMost;
    if (ioctl(file.get(), FS_IOC_FIEMAP, map) != 0) continue;
    for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      if ((extent.fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC)) != 0) continue;
      extents.emplace_back(extent.fe_physical, extent.fe_physical + extent.fe_length);
    }
  }
  return extents;
}

}  // namespace siltfs::blocktest
