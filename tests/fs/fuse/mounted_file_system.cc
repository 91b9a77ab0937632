#include "tests/fs/fuse/mounted_file_system.h"

#include <fcntl.h>
#include <sched.h>
#include <spdlog/sinks/null_sink.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "store/env/posix_env.h"

namespace siltfs::testing {
namespace {

void Demand(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what + ": " + std::strerror(errno));
}

// The transport that the environment asks for. Otherwise it depends on the machine.
IoUringUse TransportOfTests() {
  const char* const use = std::getenv("SILTFS_TEST_IO_URING");
  if (use == nullptr) return IoUringUse::kAuto;
  return std::string_view(use) == "on" ? IoUringUse::kOn : IoUringUse::kOff;
}

}  // namespace

void EnterPrivateMountNamespace() {
  static const bool entered = [] {
    Demand(unshare(CLONE_NEWNS) == 0, "a mount namespace of the test's own (are you root?)");
    // Private propagation fails if the root of a chroot is not a mount point. Mounts may then be
    // visible outside until their test unmounts them.
    const bool is_private = mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    Demand(is_private || errno == EINVAL, "private mounts");
    umask(0);
    return true;
  }();
  static_cast<void>(entered);
}

MountedFileSystem::MountedFileSystem(FileSystem& file_system, MountOptions options,
                                     Descriptors descriptors)
    : file_system_(file_system), descriptors_(descriptors), env_(NewPosixEnv()) {
  EnterPrivateMountNamespace();
  std::string pattern = std::filesystem::temp_directory_path() / "siltfs-mount-XXXXXX";
  Demand(mkdtemp(pattern.data()) != nullptr, "mkdtemp " + pattern);
  mountpoint_ = pattern;
  if (options.io_uring == IoUringUse::kAuto) options.io_uring = TransportOfTests();
  FuseBindingOptions binding_options{.mountpoint = mountpoint_,
                                     .store = kSource,
                                     .mount = std::move(options),
                                     .log = std::make_shared<spdlog::logger>(
                                         "test", std::make_shared<spdlog::sinks::null_sink_mt>()),
                                     .on_ready = {}};
  std::promise<Status> promise;
  std::future<Status> mounted = promise.get_future();
  server_ =
      std::thread(&MountedFileSystem::Serve, this, std::move(binding_options), std::move(promise));
  const Status status = mounted.get();
  if (status.ok()) return;
  server_.join();
  rmdir(mountpoint_.c_str());
  throw std::runtime_error(status.ToString());
}

void MountedFileSystem::Serve(FuseBindingOptions options, std::promise<Status> mounted) {
  if (descriptors_ == Descriptors::kCopied && unshare(CLONE_FILES) != 0)
    return mounted.set_value(Status(StatusCode::kIoError, "unshare"));
  auto binding = FuseBinding::Mount(*env_, file_system_, std::move(options));
  mounted.set_value(binding.status());
  if (!binding.ok()) return;
  binding_ = binding->get();
  outcome_ = (*binding)->Serve();
  binding_ = nullptr;
}

MountedFileSystem::~MountedFileSystem() {
  if (server_.joinable()) {
    if (!MountLine().empty()) umount2(mountpoint_.c_str(), MNT_FORCE | MNT_DETACH);
    server_.join();
    outcome_.IgnoreError("the test is over or has failed already");
  }
  rmdir(mountpoint_.c_str());  // fails on a mountpoint, so it cannot destroy anything
}

Status MountedFileSystem::Unmount() {
  Demand(umount2(mountpoint_.c_str(), 0) == 0, "umount " + mountpoint_);
  server_.join();
  return std::move(outcome_);
}

void MountedFileSystem::DropCaches() const {
  const int directory = open(mountpoint_.c_str(), O_RDONLY | O_DIRECTORY);
  Demand(directory >= 0 && syncfs(directory) == 0, "syncfs " + mountpoint_);
  close(directory);
  // Writing 2 drops inodes with their pages, but not the page cache of other programs. The first
  // round spares recently used names.
  for (int time = 0; time < 2; ++time) std::ofstream("/proc/sys/vm/drop_caches") << "2\n";
}

std::string MountedFileSystem::MountLine() const {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" " + mountpoint_ + " ") != std::string::npos) return line;
  }
  return {};
}

}  // namespace siltfs::testing
