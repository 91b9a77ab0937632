#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "store/env/daemon.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr const char* kFuseDevice = "/dev/fuse";
// How long CheckMountpoint waits for an answer of the file system that holds the mountpoint.
constexpr std::chrono::seconds kMountpointPatience{10};

struct Freer {
  void operator()(char* text) const { free(text); }
};

// The path without symbolic links. kNotFound if it does not exist.
Result<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, Freer> resolved(realpath(path.c_str(), nullptr));
  if (!resolved) return PosixError("find it", errno).At(path);
  return std::string(resolved.get());
}

// Names the first missing directory of `path`.
Status MissingParent(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (RealPath(parent).status().Is(StatusCode::kNotFound)) {
      return Status(StatusCode::kNotFound,
                    fmt::format("its parent directory {} does not exist", parent))
          .At(path);
    }
  }
  return PosixError("find it", ENOENT).At(path);
}

// Aborts the FUSE connection of the path through its entry in the kernel's list of connections. The
// entry is found by the device number. The user that made the mount needs no privileges for this.
Status AbortConnection(const std::string& path) {
  struct stat stat = {};
  if (::stat(path.c_str(), &stat) != 0) return PosixError("find its device", errno).At(path);
  const std::string control = fmt::format("/sys/fs/fuse/connections/{}/abort", minor(stat.st_dev));
  const Descriptor file(
      RetryInterrupted([&] { return open(control.c_str(), O_WRONLY | O_CLOEXEC); }));
  if (!file.valid() || RetryInterrupted([&] { return write(file.get(), "1", 1); }) != 1) {
    return PosixError("abort the connection", errno).At(control);
  }
  return {};
}

std::string ReadAll(const Descriptor& pipe) {
  std::string text;
  char bytes[512];
  while (true) {
    const ssize_t got = RetryInterrupted([&] { return read(pipe.get(), bytes, sizeof bytes); });
    if (got <= 0) return text;
    text.append(bytes, static_cast<size_t>(got));
  }
}

// Unmounts with fusermount3, which has rights that a user lacks. fusermount3 reports errors only as
// text. `option` is "-u", or "-uz" to detach the mount.
Status RunFusermount(const char* option, const std::string& path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return PosixError("run fusermount3", errno).At(path);
  const Descriptor said(ends[0]);
  Descriptor says(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, says.get(), STDERR_FILENO);
  const char* const arguments[] = {"fusermount3", option, "--", path.c_str(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                 const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return PosixError("run fusermount3", error).At(path);
  says.Reset();
  const std::string words = ReadAll(said);
  int status = 0;
  if (RetryInterrupted([&] { return waitpid(child, &status, 0); }) < 0)
    return PosixError("unmount", errno).At(path);
  if (status == 0) return {};
  if (words.find("busy") != std::string::npos) return MountIsBusy(path);
  return Status(
             StatusCode::kNotPermitted,
             fmt::format("cannot unmount: {}", std::string_view(words).substr(0, words.find('\n'))))
      .At(path);
}

}  // namespace

Result<std::string> AbsolutePath(const std::string& path) {
  if (path.empty()) return Status(StatusCode::kInvalidArgument, "the path is empty");
  auto whole = RealPath(path);
  if (whole.ok() || !whole.status().Is(StatusCode::kNotFound)) return whole;
  size_t end = path.find_last_not_of('/');
  end = end == std::string::npos ? 0 : end + 1;
  const size_t slash = path.rfind('/', end == 0 ? 0 : end - 1);
  const std::string name =
      slash == std::string::npos ? path.substr(0, end) : path.substr(slash + 1, end - slash - 1);
  if (name.empty() || name == "." || name == "..") return std::move(whole).status();
  const std::string parent = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const auto directory = RealPath(parent);
  if (directory.status().Is(StatusCode::kNotFound)) return MissingParent(path);
  if (!directory.ok()) return directory;
  struct stat stat = {};
  if (::lstat(path.c_str(), &stat) == 0 && S_ISLNK(stat.st_mode))
    return Status(StatusCode::kNotFound, "the symbolic link leads nowhere").At(path);
  return *directory == "/" ? "/" + name : *directory + "/" + name;
}

std::optional<std::string> AbsoluteName(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  if (failed || std::find(whole.begin(), whole.end(), "..") != whole.end()) return std::nullopt;
  return whole.lexically_normal().string();
}

MountAnswer ProbeMount(const std::string& path, std::chrono::milliseconds limit) {
  std::packaged_task<int()> ask([path] {
    struct statfs file_system = {};
    return ::statfs(path.c_str(), &file_system) == 0 ? 0 : errno;
  });
  std::future<int> answer = ask.get_future();
  std::thread asking;
  try {
    asking = std::thread(std::move(ask));
  } catch (const std::system_error&) {
    return MountAnswer::kSilent;  // no thread can be started, so no answer can be awaited
  }
  if (answer.wait_for(limit) != std::future_status::ready) {
    asking.detach();
    return MountAnswer::kSilent;
  }
  asking.join();
  const int error = answer.get();
  return error == ENOTCONN || error == ECONNABORTED ? MountAnswer::kDead : MountAnswer::kAnswers;
}

Status CheckMountpoint(const std::string& path) {
  // Ask for the free space first. stat alone may succeed on a dead file system, because the kernel
  // may have cached its attributes.
  switch (ProbeMount(path, kMountpointPatience)) {
    case MountAnswer::kDead:
      return Status(StatusCode::kIoError, fmt::format("a FUSE file system that crashed is still "
                                                      "mounted there (umount {} removes it)",
                                                      path))
          .At(path);
    case MountAnswer::kSilent:
      return Status(StatusCode::kIoError,
                    "the file system that is mounted there does not answer; if its process was "
                    "stopped, kill -CONT continues it")
          .At(path);
    case MountAnswer::kAnswers:
      break;
  }
  struct stat stat = {};
  if (::stat(path.c_str(), &stat) != 0) {
    if (errno == ENOENT)
      return Status(StatusCode::kNotFound, "the mountpoint does not exist").At(path);
    return PosixError("use it as mountpoint", errno).At(path);
  }
  if (!S_ISDIR(stat.st_mode))
    return Status(StatusCode::kNotADirectory, "the mountpoint is not a directory").At(path);
  return {};
}

Status CheckFuseDevice() {
  const Descriptor device(RetryInterrupted([] { return open(kFuseDevice, O_RDWR | O_CLOEXEC); }));
  if (device.valid()) return {};
  switch (errno) {
    case ENOENT:
      return Status(StatusCode::kIoError,
                    "there is no such device: the kernel's FUSE module is not loaded, or this "
                    "container was not given it")
          .At(kFuseDevice);
    case ENODEV:
    case ENXIO:
      return Status(StatusCode::kIoError, "the kernel's FUSE module is not loaded").At(kFuseDevice);
    case EACCES: {
      struct stat info = {};
      if (::stat(kFuseDevice, &info) != 0) return PosixError("open it", EACCES).At(kFuseDevice);
      return Status(StatusCode::kAccessDenied,
                    fmt::format("this user may not open it: its mode is {:04o} and its group {}; "
                                "\"chmod 0666 {}\" lets all users mount",
                                info.st_mode & 07777, info.st_gid, kFuseDevice))
          .At(kFuseDevice);
    }
    case EPERM:
      return Status(StatusCode::kNotPermitted,
                    "this process may not open it: its container was not given the device")
          .At(kFuseDevice);
    default:
      return PosixError("open it", errno).At(kFuseDevice);
  }
}

Status CheckFuseDescriptor(const Descriptor& device) {
  constexpr unsigned kMajor = 10;  // fixed numbers of Linux
  constexpr unsigned kMinor = 229;
  struct stat about = {};
  const int flags = fcntl(device.get(), F_GETFL);
  const bool good = flags >= 0 && fstat(device.get(), &about) == 0 && S_ISCHR(about.st_mode) &&
                    about.st_rdev == makedev(kMajor, kMinor) && (flags & O_PATH) == 0 &&
                    (flags & O_ACCMODE) == O_RDWR;
  if (!good) return {StatusCode::kInvalidArgument, "the descriptor is no open /dev/fuse"};
  if (fcntl(device.get(), F_SETFL, flags | O_NONBLOCK) == 0) return {};
  return PosixError("make it non-blocking", errno).At(kFuseDevice);
}

Status UnmountFuse(const std::string& path) {
  Status status = Unmount(path, UnmountMode::kWhenIdle);
  return status.Is(StatusCode::kNotPermitted) ? RunFusermount("-u", path) : status;
}

Status DetachFuse(const std::string& path) {
  Status status = Unmount(path, UnmountMode::kDetach);
  return status.Is(StatusCode::kNotPermitted) ? RunFusermount("-uz", path) : status;
}

Status SyncMount(const std::string& path) {
  const Descriptor directory(
      RetryInterrupted([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!directory.valid()) return PosixError("open it", errno).At(path);
  if (syncfs(directory.get()) != 0) return PosixError("write it back", errno).At(path);
  return {};
}

Status SendWrites(const std::string& path) {
  const Status synced = SyncMount(path);
  const bool refused = synced.Is(StatusCode::kQuotaExceeded) || synced.Is(StatusCode::kNoSpace);
  return refused ? Status::Ok() : synced;
}

Status AbortMount(const std::string& path) {
  if (geteuid() != 0) return AbortConnection(path);
  // MNT_FORCE ends the connection even if the unmount fails because the mount is busy. In that case
  // MNT_DETACH removes the mount from the mount table.
  if (umount2(path.c_str(), MNT_FORCE) == 0 || umount2(path.c_str(), MNT_DETACH) == 0) return {};
  return PosixError("unmount it", errno).At(path);
}

}  // namespace siltfs
