#include "store/env/listening_socket.h"

#include <string>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE("addresses to listen on are parsed, and others are refused with one sentence") {
  const auto local = ListenAddress::Parse("127.0.0.1:9851");
  REQUIRE_OK(local);
  CHECK(local->host == "127.0.0.1");
  CHECK(local->port == 9851);
  const auto any = ListenAddress::Parse("[::]:0");
  REQUIRE_OK(any);
  CHECK(any->host == "::");
  CHECK(any->port == 0);
  const auto path = ListenAddress::Parse("unix:/run/a:1");
  REQUIRE_OK(path);
  CHECK(path->path == "/run/a:1");
  REQUIRE_OK(ListenAddress::Parse("localhost:80"));
  for (const std::string wrong : {"", ":", "9851", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536",
                                  "1.2.3.4:-1", "1.2.3.4:1x", "::1:80", "[::1]", "[1.2.3.4]:80",
                                  "[]:80", "example.org:80", "unix:", "unix:a", "unix:/run/"}) {
    INFO(wrong);
    const auto refused = ListenAddress::Parse(wrong);
    CHECK(refused.status().Is(StatusCode::kInvalidArgument));
    CHECK(refused.status().ToString().find("\"" + wrong + "\" is no address") == 0);
  }
}

TEST_CASE("a port that another socket has is in use, and the system can choose one") {
  const auto first = ListeningSocket::Open({.host = "127.0.0.1", .port = 0});
  REQUIRE_OK(first);
  const auto address = ListenAddress::Parse(first->name());
  REQUIRE_OK(address);
  CHECK(address->port != 0);
  CHECK(ListeningSocket::Open(*address).status().Is(StatusCode::kInUse));
  const auto copy = first->Duplicate();
  REQUIRE_OK(copy);
  CHECK(copy->valid());
}

}  // namespace
}  // namespace siltfs::testing
