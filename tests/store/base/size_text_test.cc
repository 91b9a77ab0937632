#include "store/base/size_text.h"

#include <cmath>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

uint64_t Parsed(std::string_view text) {
  const Result<uint64_t> size = ParseSize(text);
  REQUIRE_OK(size);
  return *size;
}

TEST_CASE("A size is a number of bytes, or of powers of 1024") {
  CHECK(Parsed("0") == 0);
  CHECK(Parsed("4096") == 4096);
  CHECK(Parsed("8K") == 8192);
  CHECK(Parsed("8k") == 8192);
  CHECK(Parsed("52M") == 54525952);
  CHECK(Parsed("3G") == 3221225472);
  CHECK(Parsed("1T") == 1099511627776);
  CHECK(Parsed("1P") == 1125899906842624);
  CHECK(Parsed("2e") == uint64_t{1} << 61);
  CHECK(Parsed("18446744073709551615") == UINT64_MAX);
}

TEST_CASE("A unit may be written out") {
  CHECK(Parsed("8KiB") == 8192);
  CHECK(Parsed("8kib") == 8192);
  CHECK(Parsed("3MiB") == 3u << 20);
  CHECK(Parsed("3GiB") == 3221225472);
  CHECK(Parsed("1TiB") == 1099511627776);
  CHECK(Parsed("1PiB") == 1125899906842624);
}

TEST_CASE("A text that is not a size is refused, and the message quotes it") {
  for (const char* text : {"", "K", "-1", "+1", "1.5M", "8 K", " 8K", "8KB", "8Ki", "8iB", "8KiBs",
                           "8X", "0x10", "1e3", "八"}) {
    INFO(text);
    const Result<uint64_t> size = ParseSize(text);
    REQUIRE_CODE(size, kInvalidArgument);
    CHECK(size.status().cause().find(text) != std::string_view::npos);
  }
}

TEST_CASE("A size beyond 64 bits is refused, not truncated") {
  REQUIRE_CODE(ParseSize("18446744073709551616"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("16777216T"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("16777216TiB"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("16384P"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("16E"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("99999999999999999999999K"), kInvalidArgument);
  CHECK(Parsed("16777215T") == 16777215ULL << 40);
  CHECK(Parsed("16383P") == 16383ULL << 50);
}

TEST_CASE("Sizes for users have one decimal and a unit") {
  CHECK(FormatSize(0) == "0 B");
  CHECK(FormatSize(1023) == "1023 B");
  CHECK(FormatSize(1024) == "1.0 KiB");
  CHECK(FormatSize(1536) == "1.5 KiB");
  CHECK(FormatSize((uint64_t{1} << 20) - 1) == "1.0 MiB");
  CHECK(FormatSize(UINT64_MAX) == "16.0 EiB");
  CHECK(FormatSize(1536, 2) == "1.50 KiB");
  CHECK(FormatSize(1024 * 1024 - 1, 2) == "1.00 MiB");
  CHECK(FormatSize(1024 * 1024 - 1, 3) == "1023.999 KiB");
  CHECK(FormatSize(std::ldexp(1, 70), 1) == "1024.0 EiB");
}

TEST_CASE("A size for the command line is exact and can be parsed") {
  CHECK(FormatSizeArgument(0) == "0");
  CHECK(FormatSizeArgument(64) == "64");
  CHECK(FormatSizeArgument(1025) == "1025");
  CHECK(FormatSizeArgument(128 << 10) == "128K");
  CHECK(FormatSizeArgument(1 << 20) == "1M");
  CHECK(Parsed(FormatSizeArgument(3ULL << 60)) == 3ULL << 60);
}

}  // namespace
}  // namespace siltfs
