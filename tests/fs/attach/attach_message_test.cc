#include "fs/attach/attach_message.h"

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs::attach {
namespace {

const Wanted kWanted{.snapshot = "nightly",
                     .mountpoint = "/mnt/a b",
                     .xattrs = false,
                     .max_read = 65536,
                     .owners = {.uid = 0, .gid = 4294967294, .umask = 027}};

TEST_CASE("The request for a mount is decoded as it was encoded") {
  const Wanted without{.snapshot = "n\"\\\n", .mountpoint = "/", .xattrs = true, .max_read = {}};
  for (const Wanted& wanted : {kWanted, without}) {
    const std::string line = EncodeWanted(wanted);
    CHECK(line.find('\n') == line.size() - 1);
    const auto decoded = DecodeWanted(line);
    REQUIRE_OK(decoded);
    CHECK(*decoded == wanted);
  }
}

TEST_CASE("A mountpoint that is not UTF-8 is encoded with replacements") {
  const auto decoded =
      DecodeWanted(EncodeWanted({.snapshot = "s", .mountpoint = "/\xff", .max_read = {}}));
  REQUIRE_OK(decoded);
  CHECK(decoded->mountpoint == "/\xef\xbf\xbd");
}

TEST_CASE("A malformed request for a mount is refused") {
  const std::vector<std::string> lines = {
      "",
      "null",
      "[]",
      "{}",
      "{\"snapshot\":\"s\"",
      R"({"snapshot":"s","mountpoint":"/m"})",
      R"({"snapshot":"s","xattrs":true})",
      R"({"mountpoint":"/m","xattrs":true})",
      R"({"snapshot":1,"mountpoint":"/m","xattrs":true})",
      R"({"snapshot":"","mountpoint":"/m","xattrs":true})",
      R"({"snapshot":"..","mountpoint":"/m","xattrs":true})",
      R"({"snapshot":"a/b","mountpoint":"/m","xattrs":true})",
      R"({"snapshot":"s","mountpoint":"m","xattrs":true})",
      R"({"snapshot":"s","mountpoint":"/m\u0000","xattrs":true})",
      R"({"snapshot":"s","mountpoint":["/m"],"xattrs":true})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":1})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"max_read":0})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"max_read":-1})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"max_read":1.5})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"max_read":"4096"})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"max_read":4294967296})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"uid":4294967295})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"gid":-1})",
      R"({"snapshot":"s","mountpoint":"/m","xattrs":true,"umask":512})",
      "{\"snapshot\":\"" + std::string(256, 's') + "\",\"mountpoint\":\"/m\",\"xattrs\":true}",
      std::string(kMaxLineBytes, '['),
  };
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(DecodeWanted(line).status().Is(StatusCode::kInvalidArgument));
  }
}

// A request that is accepted must be one that a client can have meant.
TEST_CASE("Changed and random bytes give a valid request or an error") {
  std::mt19937_64 random(20261128);
  const std::string good = EncodeWanted(kWanted);
  for (int i = 0; i < 20000; ++i) {
    std::string line = good;
    if (i % 4 == 0) line.resize(random() % line.size());
    if (i % 4 == 1) line.assign(random() % 200, '\0');
    for (size_t n = i % 4 == 1 ? line.size() : random() % 4; n > 0 && !line.empty(); --n)
      line[random() % line.size()] = static_cast<char>(random());
    CAPTURE(i);
    const auto decoded = DecodeWanted(line);
    if (!decoded.ok()) {
      REQUIRE_CODE(decoded, kInvalidArgument);
      continue;
    }
    REQUIRE(decoded->mountpoint.starts_with('/'));
    REQUIRE(decoded->snapshot.size() <= 255);
    REQUIRE(decoded->snapshot.find('/') == std::string::npos);
    REQUIRE(decoded->max_read.value_or(1) > 0);
    REQUIRE(decoded->owners.umask.value_or(0) <= 0777);
  }
}

TEST_CASE("A device number is decoded as it was encoded") {
  for (const uint64_t device :
       {uint64_t{0}, uint64_t{53}, uint64_t{10} << 32 | 229, uint64_t{4095} << 32 | 1048575}) {
    const Bytes message = EncodeDevice(device);
    CHECK(message.size() == kMountBytes);
    const auto decoded = DecodeDevice(message);
    REQUIRE_OK(decoded);
    CHECK(*decoded == device);
  }
  CHECK(DeviceText(53) == "0:53");
  CHECK(DeviceText(uint64_t{10} << 32 | 229) == "10:229");
  CHECK(DeviceText(0).empty());
}

TEST_CASE("A device number that the kernel cannot give is refused") {
  for (const uint64_t device : {uint64_t{4096} << 32, uint64_t{1048576}, ~uint64_t{0}}) {
    REQUIRE_CODE(DecodeDevice(EncodeDevice(device)), kInvalidArgument);
  }
  for (const size_t size : {0, 1, 7, 9, 100}) {
    REQUIRE_CODE(DecodeDevice(Bytes(size)), kInvalidArgument);
  }
}

}  // namespace
}  // namespace siltfs::attach
