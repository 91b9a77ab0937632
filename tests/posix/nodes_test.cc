// Device nodes, fifos and sockets.
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE_METHOD(OnTheFileSystem,
                 "A device node keeps its numbers and mode after the caches are dropped") {
  REQUIRE(Outcome(mknod(Path("null").c_str(), S_IFCHR | 0640, makedev(1, 3))) == 0);
  REQUIRE(Outcome(mknod(Path("disk").c_str(), S_IFBLK | 0600, makedev(259, 70'000))) == 0);
  DropCaches();
  CHECK(StatOf(Path("null")).st_mode == (S_IFCHR | 0640));
  CHECK(StatOf(Path("null")).st_rdev == makedev(1, 3));
  CHECK(StatOf(Path("disk")).st_mode == (S_IFBLK | 0600));
  CHECK(StatOf(Path("disk")).st_rdev == makedev(259, 70'000));
}

TEST_CASE_METHOD(OnTheFileSystem, "Only the superuser makes device nodes") {
  CHECK(As(kAlice, kUsers, [&] {
          return Outcome(mknod(Path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)));
        }) == EPERM);
  CHECK(As(kAlice, kUsers, [&] { return Outcome(mkfifo(Path("fifo").c_str(), 0600)); }) == 0);
  CHECK(StatOf(Path("fifo")).st_uid == kAlice);
  CHECK(StatOf(Path("fifo")).st_gid == kUsers);
}

TEST_CASE_METHOD(OnTheFileSystem, "Data pass through a fifo") {
  const std::string path = Path("fifo");
  REQUIRE(Outcome(mkfifo(path.c_str(), 0600)) == 0);
  CHECK(Descriptor(path, O_WRONLY | O_NONBLOCK).error() == ENXIO);
  ChildProcess writer([&] {
    const Descriptor end(path, O_WRONLY);
    return write(end.get(), "through the fifo", 16) == 16 ? 0 : 1;
  });
  const Descriptor end(path, O_RDONLY);
  char buffer[32] = {};
  REQUIRE(read(end.get(), buffer, sizeof buffer) == 16);
  CHECK(std::string(buffer) == "through the fifo");
  CHECK(writer.Wait() == 0);
  CHECK(read(end.get(), buffer, sizeof buffer) == 0);
  CHECK(Outcome(lseek(end.get(), 0, SEEK_SET)) == ESPIPE);
  CHECK(StatOf(path).st_size == 0);
}

struct SocketAddress {
  sockaddr_un address = {};
  explicit SocketAddress(const std::string& path) {
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

TEST_CASE_METHOD(OnTheFileSystem, "A socket accepts connections by name, also after a rename") {
  const SocketAddress address(Path("socket"));
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(Outcome(bind(server, address.get(), sizeof address.address)) == 0);
  CHECK(S_ISSOCK(StatOf(Path("socket")).st_mode));
  CHECK(Outcome(bind(socket(AF_UNIX, SOCK_STREAM, 0), address.get(), sizeof address.address)) ==
        EADDRINUSE);
  REQUIRE(Outcome(listen(server, 1)) == 0);
  REQUIRE(Outcome(rename(Path("socket").c_str(), Path("moved").c_str())) == 0);
  const SocketAddress moved(Path("moved"));
  CHECK(InChild([&] {
          const int client = socket(AF_UNIX, SOCK_STREAM, 0);
          if (connect(client, address.get(), sizeof address.address) == 0) return 1;
          if (connect(client, moved.get(), sizeof moved.address) != 0) return errno;
          return write(client, "hello", 5) == 5 ? 0 : 2;
        }) == 0);
  const int connection = accept(server, nullptr, nullptr);
  char buffer[8] = {};
  CHECK(read(connection, buffer, sizeof buffer) == 5);
  CHECK(std::string(buffer) == "hello");
  close(connection);
  close(server);
  CHECK(Descriptor(Path("moved"), O_RDONLY).error() == ENXIO);
}

}  // namespace
}  // namespace siltfs::testing
