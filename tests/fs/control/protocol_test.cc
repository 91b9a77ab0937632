#include "fs/control/protocol.h"

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

TEST_CASE("A request is encoded and decoded") {
  const std::string line = EncodeRequest({.command = "stat"});
  CHECK(line == "{\"command\":\"stat\"}\n");
  const auto request = DecodeRequest(line);
  REQUIRE_OK(request);
  CHECK(request->command == "stat");
}

TEST_CASE("A malformed request is refused") {
  for (const char* line :
       {"", "stat", "{}", "[]", "null", "{\"command\":7}", "{\"command\":\"stat\"", "\xff\xfe",
        "{\"Command\":\"stat\"}", "\"command\""}) {
    INFO(line);
    REQUIRE_CODE(DecodeRequest(line), kInvalidArgument);
  }
}

TEST_CASE("A result is encoded and decoded") {
  const auto back = DecodeResponse(EncodeResponse(Json{{"files", 3}}));
  REQUIRE_OK(back);
  CHECK((*back)["files"] == 3);
  REQUIRE_OK(DecodeResponse(EncodeResponse(Json())));
}

TEST_CASE("A failure keeps its code and its text") {
  const Status failure = Status(StatusCode::kNoSpace, "the disk is full").At("/store");
  const auto back = DecodeResponse(EncodeResponse(failure));
  REQUIRE_CODE(back, kNoSpace);
  CHECK(back.status().cause() == "/store: the disk is full");
}

TEST_CASE("A failure whose text is not UTF-8 is also decoded") {
  REQUIRE_CODE(DecodeResponse(EncodeResponse(Status(StatusCode::kIoError, "caf\xe9"))), kIoError);
}

TEST_CASE("A malformed response is kCorruption") {
  for (const char* line :
       {"", "{}", "{\"ok\":1}", "{\"ok\":false}", "{\"ok\":false,\"code\":1,\"error\":\"x\"}",
        "{\"ok\":false,\"code\":\"x\"}", "[true]"}) {
    INFO(line);
    REQUIRE_CODE(DecodeResponse(line), kCorruption);
  }
  REQUIRE_CODE(DecodeResponse("{\"ok\":false,\"code\":\"of tomorrow\",\"error\":\"x\"}"), kIoError);
}

TEST_CASE("Random bytes and random changes crash neither parser") {
  Random random(7);
  const std::string good = EncodeResponse(Json{{"a", {1, 2, {{"b", nullptr}}}}});
  for (int i = 0; i < 3000; ++i) {
    std::string line = good;
    for (uint64_t changes = random.Below(6); changes-- > 0;) {
      line[random.Below(line.size())] = static_cast<char>(random.Next());
    }
    static_cast<void>(DecodeResponse(line).ok());
    static_cast<void>(DecodeRequest(line).ok());
  }
}

TEST_CASE("The deepest nesting that a request allows does no harm") {
  REQUIRE_CODE(DecodeRequest(std::string(kMaxRequestBytes, '[')), kInvalidArgument);
}

TEST_CASE("A message that is nested deeply is refused, because documents are walked recursively") {
  const auto nested = [](size_t levels) {
    return "{\"ok\":true,\"command\":\"x\",\"result\":" + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  REQUIRE_OK(DecodeResponse(nested(20)));
  REQUIRE_CODE(DecodeResponse(nested(1'000)), kCorruption);
  REQUIRE_CODE(DecodeResponse(nested(kMaxResponseBytes / 2 - 100)), kCorruption);
  REQUIRE_OK(DecodeRequest(nested(20)));
  REQUIRE_CODE(DecodeRequest(nested(1'000)), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs::control
