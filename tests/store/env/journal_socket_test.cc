#include "store/env/journal_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

// A journal that only receives.
class Receiver {
 public:
  explicit Receiver(const std::string& path) : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Receiver() { close(fd_); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string Receive() const {
    std::string data(1 << 20, '\0');
    const ssize_t size = recv(fd_, data.data(), data.size(), 0);
    REQUIRE(size >= 0);
    data.resize(static_cast<size_t>(size));
    return data;
  }

 private:
  const int fd_;
};

TEST_CASE("an entry has a line for each field, and its length if the value has line breaks") {
  const TemporaryDirectory directory;
  const Receiver receiver(directory / "socket");
  const auto journal = JournalSocket::Open(directory / "socket");
  REQUIRE_OK(journal);
  REQUIRE_OK((*journal)->Send({{"MESSAGE", "two\nlines"}, {"PRIORITY", "3"}, {"EMPTY", ""}}));
  CHECK(receiver.Receive() == std::string("MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n"
                                          "PRIORITY=3\nEMPTY=\n",
                                          44));
}

TEST_CASE("a value that is too long for the journal is cut off") {
  const TemporaryDirectory directory;
  const Receiver receiver(directory / "socket");
  const auto journal = JournalSocket::Open(directory / "socket");
  REQUIRE_OK(journal);
  REQUIRE_OK((*journal)->Send({{"MESSAGE", std::string(1 << 20, 'x')}, {"NEXT", "y"}}));
  CHECK(receiver.Receive() ==
        "MESSAGE=" + std::string(JournalSocket::kMostBytes, 'x') + "\nNEXT=y\n");
}

TEST_CASE("without a journal, or after its end, there is an error") {
  const TemporaryDirectory directory;
  CHECK(JournalSocket::Open(directory / "none").status().Is(StatusCode::kNotFound));
  std::unique_ptr<JournalSocket> journal;
  {
    const Receiver receiver(directory / "socket");
    auto opened = JournalSocket::Open(directory / "socket");
    REQUIRE_OK(opened);
    journal = *std::move(opened);
  }
  const Status sent = journal->Send({{"MESSAGE", "x"}});
  CHECK_FALSE(sent.ok());
  CHECK(sent.path() == directory / "socket");
}

}  // namespace
}  // namespace siltfs::testing
