#include "fs/fuse/size_text.h"

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
  CHECK(Parsed("18446744073709551615") == UINT64_MAX);
}

TEST_CASE("What is not a size is refused with the text in the sentence") {
  for (const char* text :
       {"", "K", "-1", "+1", "1.5M", "8 K", " 8K", "8KB", "8KiB", "8X", "0x10", "1e3", "八"}) {
    INFO(text);
    const Result<uint64_t> size = ParseSize(text);
    REQUIRE_CODE(size, kInvalidArgument);
    CHECK(size.status().cause().find(text) != std::string_view::npos);
  }
}

TEST_CASE("A size beyond 64 bits is refused rather than cut") {
  REQUIRE_CODE(ParseSize("18446744073709551616"), kInvalidArgument);
  REQUIRE_CODE(ParseSize("16777216T"), kInvalidArgument);
  CHECK(Parsed("16777215T") == 16777215ULL << 40);
}

TEST_CASE("Sizes for people have one decimal and a unit") {
  CHECK(FormatSize(0) == "0 B");
  CHECK(FormatSize(1023) == "1023 B");
  CHECK(FormatSize(1024) == "1.0 KiB");
  CHECK(FormatSize(1536) == "1.5 KiB");
  CHECK(FormatSize((uint64_t{1} << 20) - 1) == "1.0 MiB");
  CHECK(FormatSize(UINT64_MAX) == "16.0 EiB");
}

}  // namespace
}  // namespace siltfs
