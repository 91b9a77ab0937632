#include "store/env/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "store/env/posix_descriptor.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

// A datagram socket, as a service manager has one.
class Manager {
 public:
  // `address` is as in NOTIFY_SOCKET.
  explicit Manager(const std::string& address) : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    REQUIRE(address.size() < sizeof name.sun_path);
    std::memcpy(name.sun_path, address.data(), address.size());
    if (address[0] == '@') name.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    REQUIRE(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), size) == 0);
  }

  // The next datagram, without waiting; empty if there is none.
  std::optional<std::string> Receive() {
    char bytes[4096];
    const ssize_t got = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0) return std::nullopt;
    return std::string(bytes, static_cast<size_t>(got));
  }

 private:
  const Descriptor fd_;
};

TEST_CASE("The service manager is told each state in one datagram with one line of text") {
  testing::TemporaryDirectory directory;
  const std::string abstract = "@siltfs-test-" + std::to_string(getpid());
  for (const std::string& address : {directory / "notify", abstract}) {
    INFO(address);
    Manager manager(address);
    const ServiceManager told(address);
    REQUIRE_OK(told.Report("opening the store"));
    CHECK(manager.Receive() == "STATUS=opening the store");
    REQUIRE_OK(told.Ready("mounted"));
    CHECK(manager.Receive() == "READY=1\nSTATUS=mounted");
    REQUIRE_OK(told.Stopping("closing"));
    CHECK(manager.Receive() == "STOPPING=1\nSTATUS=closing");
    CHECK(manager.Receive() == std::nullopt);
  }
}

TEST_CASE("A line break in the text adds no assignment to the message") {
  testing::TemporaryDirectory directory;
  Manager manager(directory / "notify");
  REQUIRE_OK(ServiceManager(directory / "notify").Report("/a\nREADY=1\r\nX=1"));
  CHECK(manager.Receive() == "STATUS=/a READY=1  X=1");
}

TEST_CASE("Without a service manager nothing is sent, and nothing fails") {
  REQUIRE_OK(ServiceManager("").Ready("mounted"));
  unsetenv("NOTIFY_SOCKET");
  REQUIRE_OK(ServiceManager::FromEnvironment().Ready("mounted"));
}

TEST_CASE("The environment names the service manager") {
  testing::TemporaryDirectory directory;
  Manager manager(directory / "notify");
  REQUIRE(setenv("NOTIFY_SOCKET", (directory / "notify").c_str(), 1) == 0);
  const ServiceManager told = ServiceManager::FromEnvironment();
  REQUIRE(unsetenv("NOTIFY_SOCKET") == 0);
  REQUIRE_OK(told.Ready("mounted"));
  CHECK(manager.Receive() == "READY=1\nSTATUS=mounted");
}

TEST_CASE("A service manager that cannot be told gives an error with its address") {
  testing::TemporaryDirectory directory;
  const Status gone = ServiceManager(directory / "nothing").Ready("mounted");
  REQUIRE_CODE(gone, kNotFound);
  CHECK(gone.path() == directory / "nothing");
  for (const std::string address : {"relative/path", "vsock:2:1234", "/", "@"}) {
    INFO(address);
    REQUIRE_CODE(ServiceManager(address).Ready("mounted"), kInvalidArgument);
  }
  REQUIRE_CODE(ServiceManager("/" + std::string(200, 'x')).Ready("mounted"), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs
