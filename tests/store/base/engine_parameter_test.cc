#include "store/base/engine_parameter.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace siltfs;

namespace {

constexpr EngineParameterSpec kDepth = {.name = "depth", .least = 1, .most = 9, .value = 4};
constexpr EngineParameterSpec kWidth = {.name = "width", .least = 0, .most = 100, .value = 7};
constexpr EngineParameterSpec kSpecs[] = {kDepth, kWidth};

std::string Refusal(const EngineParameters& parameters) {
  const Status checked = CheckEngineParameters("oak", kSpecs, parameters);
  REQUIRE_CODE(checked, kInvalidArgument);
  return std::string(checked.cause());
}

}  // namespace

TEST_CASE("Known parameters in their ranges are accepted, once each") {
  REQUIRE_OK(CheckEngineParameters("oak", kSpecs, {}));
  REQUIRE_OK(CheckEngineParameters("oak", kSpecs, EngineParameters{{"width", 0}, {"depth", 9}}));
  CHECK(Refusal({{"height", 1}}) ==
        "engine oak has no parameter \"height\" (there are: depth, width)");
  CHECK(Refusal({{"depth", 10}}) ==
        "engine oak: 10 is not a value from 1 to 9 for parameter depth");
  CHECK(Refusal({{"depth", 0}}) == "engine oak: 0 is not a value from 1 to 9 for parameter depth");
  CHECK(Refusal({{"depth", 1}, {"width", 1}, {"depth", 1}}) ==
        "engine oak: parameter depth is given twice");
  const Status none = CheckEngineParameters("elm", {}, EngineParameters{{"depth", 1}});
  REQUIRE_CODE(none, kInvalidArgument);
  CHECK(none.cause() == "engine elm has no parameter \"depth\" (there are: none)");
}

TEST_CASE("A parameter that is not given has its default") {
  CHECK(ValueOf(kDepth, {}) == 4);
  CHECK(ValueOf(kDepth, EngineParameters{{"width", 1}}) == 4);
  CHECK(ValueOf(kWidth, EngineParameters{{"width", 1}}) == 1);
}

TEST_CASE("A parameter is parsed from its name and a whole number") {
  const auto parsed = ParseEngineParameter("partition_bits=12");
  REQUIRE_OK(parsed);
  CHECK(*parsed == EngineParameter{"partition_bits", 12});
  for (const char* wrong :
       {"", "depth", "depth=", "=4", "depth=4x", "depth=-1", "depth= 4", "Depth=4", "4=4",
        "depth=18446744073709551616", "a b=1", "a_name_longer_than_its_24=1"}) {
    CAPTURE(wrong);
    REQUIRE_CODE(ParseEngineParameter(wrong), kInvalidArgument);
  }
}

TEST_CASE("An engine's name is a short word") {
  for (const char* right : {"a", "rocksdb", "log_2", "sixteen_letters_"})
    CHECK(IsEngineWord(right, kEngineNameSize));
  for (const char* wrong : {"", "2log", "_a", "Rocks", "rocks db", "seventeen_letters"})
    CHECK_FALSE(IsEngineWord(wrong, kEngineNameSize));
  CHECK_FALSE(IsEngineWord(std::string_view("a\0b", 3), kEngineNameSize));
}
