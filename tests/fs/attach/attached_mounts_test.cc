// Mounts that are made by MakeMount and served by AttachedMounts, with the real kernel. Needs root
// and /dev/fuse.
#include "fs/attach/attached_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <spdlog/sinks/null_sink.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>

#include "fs/attach/attach_message.h"
#include "fs/fuse/mount_maker.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

// All mounts of this program are private to it.
void EnterMountNamespace() {
  static const bool entered = [] {
    REQUIRE(unshare(CLONE_NEWNS) == 0);
    const bool is_private = mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    REQUIRE((is_private || errno == EINVAL));
    return true;
  }();
  static_cast<void>(entered);
}

bool Never() { return false; }

struct Fixture {
  Fixture() {
    EnterMountNamespace();
    const auto made = file_system->CreateFile(kRootInode, "file", 0644, {});
    REQUIRE_OK(made);
    REQUIRE_OK(file_system->Write(made->inode, 0, AsBytes("text")));
    file_system->ReleaseFile(made->inode);
    file_system->Forget(made->inode, 1);
  }

  std::string MakeMountpoint(const std::string& name) {
    REQUIRE(mkdir((directory / name).c_str(), 0755) == 0);
    return directory / name;
  }
  MadeMount Make(const std::string& mountpoint) {
    MountOptions mount;
    mount.read_only = true;
    auto made = MakeMount({.mountpoint = mountpoint,
                           .store = "/the store",
                           .mount = mount,
                           .log = nullptr,
                           .on_ready = {}});
    REQUIRE_OK(made);
    REQUIRE(made->device != 0);
    return *std::move(made);
  }
  AttachRequest Request(const std::string& mountpoint, uint64_t device, Descriptor connection) {
    return {.mount = {.mountpoint = mountpoint, .device = device, .snapshot = "s"},
            .shown = file_system,
            .connection = std::move(connection)};
  }
  // Makes a mount of this name and hands it over.
  std::string Attach(const std::string& name) {
    std::string mountpoint = MakeMountpoint(name);
    MadeMount made = Make(mountpoint);
    REQUIRE_OK(mounts.Add(Request(mountpoint, made.device, std::move(made.connection)), Never));
    return mountpoint;
  }

  TemporaryDirectory directory;
  std::unique_ptr<Env> env = NewPosixEnv();
  std::shared_ptr<MemoryFileSystem> file_system = std::make_shared<MemoryFileSystem>();
  AttachedMounts mounts{*env,
                        {.store = "/the store",
                         .log = std::make_shared<spdlog::logger>(
                             "test", std::make_shared<spdlog::sinks::null_sink_mt>())}};
};

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
int ErrorOfOpening(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? 0 : errno;
}

TEST_CASE_METHOD(Fixture, "A mount that was handed over is served until it is unmounted") {
  const std::string mountpoint = Attach("a");
  CHECK(Content(mountpoint + "/file") == "text");
  REQUIRE(mounts.List().size() == 1);
  const std::string device = attach::DeviceText(mounts.List()[0].device);
  CHECK(mounts.Find(device) == file_system);
  CHECK(mounts.Find("0:0") == nullptr);
  CHECK_FALSE(mounts.CloseIfEmpty());
  REQUIRE_OK(UnmountFuse(mountpoint));
  mounts.AwaitEnd();
  CHECK(mounts.List().empty());
  CHECK(mounts.Find(device) == nullptr);
  CHECK(file_system.use_count() == 1);  // nothing of the mount is kept
  CHECK(mounts.CloseIfEmpty());
  REQUIRE_CODE(mounts.CheckRoom(), kAborted);
}

TEST_CASE_METHOD(Fixture, "EndAll unmounts all mounts, and none is added afterwards") {
  const std::string first = Attach("a");
  const std::string second = Attach("b");
  const Descriptor open_file(open((second + "/file").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(open_file.valid());
  const std::string third = MakeMountpoint("c");
  MadeMount late = Make(third);
  mounts.EndAll();
  mounts.AwaitEnd();
  CHECK(ErrorOfOpening(first + "/file") == ENOENT);   // the empty directory below the mount
  CHECK(ErrorOfOpening(second + "/file") == ENOENT);  // although a file was open
  char byte = 0;
  CHECK(pread(open_file.get(), &byte, 1, 0) <= 0);
  REQUIRE_CODE(mounts.Add(Request(third, late.device, std::move(late.connection)), Never),
               kAborted);
  CHECK(ErrorOfOpening(third + "/file") == ENOTCONN);
  REQUIRE_OK(UnmountFuse(third));
}

// The mountpoint is not this mount's, as if it were in another mount namespace.
TEST_CASE_METHOD(Fixture, "A mount that EndAll cannot find loses its connection") {
  const std::string mountpoint = MakeMountpoint("a");
  MadeMount made = Make(mountpoint);
  REQUIRE_OK(mounts.Add(Request("/nowhere", made.device, std::move(made.connection)), Never));
  CHECK(Content(mountpoint + "/file") == "text");
  mounts.EndAll();
  mounts.AwaitEnd();
  CHECK(ErrorOfOpening(mountpoint + "/file") == ENOTCONN);
  REQUIRE_OK(UnmountFuse(mountpoint));
}

TEST_CASE_METHOD(Fixture, "A descriptor that is no connection of a mount is refused") {
  const auto refused = [&](const char* path, int flags, StatusCode code) {
    CAPTURE(path, flags);
    Descriptor descriptor(open(path, flags | O_CLOEXEC));
    REQUIRE(descriptor.valid());
    const Status status = mounts.Add(Request("/nowhere", 0, std::move(descriptor)), Never);
    CHECK(status.code() == code);
  };
  refused("/dev/null", O_RDWR, StatusCode::kInvalidArgument);
  refused("/dev/fuse", O_RDONLY, StatusCode::kInvalidArgument);
  refused("/dev/fuse", O_PATH, StatusCode::kInvalidArgument);
  refused("/dev/fuse", O_RDWR, StatusCode::kIoError);  // it has no mount
  REQUIRE_CODE(mounts.Add(Request("/nowhere", 0, Descriptor()), Never), kInvalidArgument);
  CHECK(mounts.List().empty());
  CHECK(file_system.use_count() == 1);
}

// The kernel sends its first request once. If the client reads it, the daemon waits for nothing.
TEST_CASE_METHOD(Fixture, "The wait for a client that reads the requests itself can be stopped") {
  const std::string mountpoint = MakeMountpoint("a");
  MadeMount made = Make(mountpoint);
  std::string request(1 << 20, '\0');
  REQUIRE(read(made.connection.get(), request.data(), request.size()) > 0);
  int asked = 0;
  const auto stopped = [&] { return ++asked > 2; };
  REQUIRE_CODE(mounts.Add(Request(mountpoint, made.device, std::move(made.connection)), stopped),
               kIoError);
  CHECK(ErrorOfOpening(mountpoint + "/file") == ENOTCONN);
  REQUIRE_OK(UnmountFuse(mountpoint));
}

TEST_CASE_METHOD(Fixture, "There is a limit, and each unmount makes room") {
  std::vector<std::string> mountpoints;
  for (size_t i = 0; i < AttachedMounts::kMost; ++i)
    mountpoints.push_back(Attach("m" + std::to_string(i)));
  REQUIRE_CODE(mounts.CheckRoom(), kInUse);
  const std::string one_more = MakeMountpoint("one more");
  MadeMount made = Make(one_more);
  REQUIRE_CODE(mounts.Add(Request(one_more, made.device, std::move(made.connection)), Never),
               kInUse);
  REQUIRE_OK(UnmountFuse(one_more));
  REQUIRE_OK(UnmountFuse(mountpoints[3]));
  while (mounts.List().size() == AttachedMounts::kMost) std::this_thread::yield();
  REQUIRE_OK(mounts.CheckRoom());
  CHECK(Content(Attach("n") + "/file") == "text");
  CHECK(Content(mountpoints[0] + "/file") == "text");
}

}  // namespace
}  // namespace siltfs::testing
