#include "chunker/parameters.h"

#include "chunker/chunker.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("the default parameters are 2, 8 and 64 KiB, and valid") {
  const ChunkerParameters parameters{.polynomial = TestPolynomial()};
  CHECK(parameters.min == 2048);
  CHECK(parameters.avg == 8192);
  CHECK(parameters.max == 65536);
  CHECK(parameters.window == 64);
  REQUIRE_OK(parameters.Validate());
}

TEST_CASE("parameters at the limits are valid, those beyond are not") {
  REQUIRE_OK(TestParameters(64, 128, 256).Validate());
  REQUIRE_OK(TestParameters(256 << 10, 512 << 10, 1 << 20).Validate());
  REQUIRE_CODE(TestParameters(63, 128, 256).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(0, 128, 256).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(64, 127, 256).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(64, 128, 255).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(2048, 8192, (1 << 20) + 1).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(8192, 8192, 8192).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(0xffffffff, 0xffffffff, 1 << 20).Validate(), kInvalidArgument);
  REQUIRE_CODE(TestParameters(64, 0x80000000, 1 << 20).Validate(), kInvalidArgument);
}

TEST_CASE("a window of a size other than 64 bytes is not supported") {
  ChunkerParameters parameters = TestParameters(2048, 8192, 65536);
  parameters.window = 48;
  REQUIRE_CODE(parameters.Validate(), kInvalidArgument);
}

TEST_CASE("an error names the invalid size") {
  CHECK(TestParameters(63, 128, 256).Validate().ToString() ==
        "the smallest chunk of 63 bytes is below 64 bytes");
  CHECK(TestParameters(2048, 8192, 8192).Validate().ToString() ==
        "the largest chunk of 8192 bytes is less than twice the mean of 8192 bytes");
}

TEST_CASE("no chunker is made of invalid parameters") {
  REQUIRE_CODE(ChunkerTables::Create(TestParameters(4096, 4096, 65536)), kInvalidArgument);
}

TEST_CASE("proportional parameters keep the default proportions and are refused out of range") {
  const ChunkerParameters parameters = ChunkerParameters::Proportional(8192, TestPolynomial());
  CHECK(parameters.min == 2048);
  CHECK(parameters.max == 65536);
  REQUIRE_OK(ChunkerParameters::Proportional(256, TestPolynomial()).Validate());
  REQUIRE_OK(ChunkerParameters::Proportional(128 << 10, TestPolynomial()).Validate());
  REQUIRE_CODE(ChunkerParameters::Proportional(255, TestPolynomial()).Validate(), kInvalidArgument);
  REQUIRE_CODE(ChunkerParameters::Proportional(256 << 10, TestPolynomial()).Validate(),
               kInvalidArgument);
  REQUIRE_CODE(ChunkerParameters::Proportional(0xffffffff, TestPolynomial()).Validate(),
               kInvalidArgument);
}

TEST_CASE("the match limit lets one in avg - min of all fingerprints match") {
  CHECK(TestParameters(2048, 8192, 65536).MatchLimit() == 9007199254740992 - 1466015503701);
  CHECK(TestParameters(64, 128, 256).MatchLimit() == 9007199254740992 - 140737488355328);
}

}  // namespace siltfs::testing
