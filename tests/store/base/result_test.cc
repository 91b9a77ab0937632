#include "store/base/result.h"

#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Status(StatusCode::kInvalidArgument, "is odd");
  return number / 2;
}

Result<std::string> QuarterInWords(int number) {
  SILTFS_ASSIGN_OR_RETURN(int half, Half(number));
  SILTFS_ASSIGN_OR_RETURN(int quarter, Half(half));
  return "a quarter is " + std::to_string(quarter);
}

Status CheckEven(int number) {
  SILTFS_RETURN_IF_ERROR(Half(number).status());
  return Status::Ok();
}

TEST_CASE("a result holds a value or a failure") {
  Result<int> good = Half(8);
  REQUIRE(good.ok());
  REQUIRE(*good == 4);
  REQUIRE(good.status().ok());
  Result<int> bad = Half(7);
  REQUIRE_CODE(bad, kInvalidArgument);
  REQUIRE(std::move(bad).status().cause() == "is odd");
}

TEST_CASE("the macros pass failures on and unpack values") {
  REQUIRE(*QuarterInWords(8) == "a quarter is 2");
  REQUIRE_CODE(QuarterInWords(7), kInvalidArgument);
  REQUIRE_CODE(QuarterInWords(6), kInvalidArgument);
  REQUIRE_OK(CheckEven(2));
  REQUIRE_CODE(CheckEven(3), kInvalidArgument);
}

TEST_CASE("a move-only value is moved") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  REQUIRE_OK(result);
  std::unique_ptr<int> taken = *std::move(result);
  REQUIRE(*taken == 5);
}

TEST_CASE("members are reached through the result") {
  Result<std::string> result = std::string("text");
  REQUIRE(result.ok());
  REQUIRE(result->size() == 4);
}

}  // namespace
}  // namespace siltfs
