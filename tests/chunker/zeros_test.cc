#include "chunker/zeros.h"

#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("zeros of any length are recognized") {
  for (size_t size = 0; size < 300; ++size) {
    CAPTURE(size);
    CHECK(IsAllZero(Bytes(size, 0)));
  }
  CHECK(IsAllZero(Bytes(1 << 20, 0)));
  CHECK(IsAllZero({}));
}

TEST_CASE("a single set bit at any place is detected") {
  for (size_t size = 1; size < 300; ++size) {
    Bytes bytes(size, 0);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<uint8_t>(1U << (i % 8));
      CAPTURE(size, i);
      REQUIRE_FALSE(IsAllZero(bytes));
      bytes[i] = 0;
    }
  }
}

TEST_CASE("other constant and periodic bytes are not zero") {
  CHECK_FALSE(IsAllZero(Bytes(65536, 0xff)));
  CHECK_FALSE(IsAllZero(Bytes(65536, 1)));
}

}  // namespace siltfs::testing
