#include "store/object/object_key.h"

#include <string>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("Keys of objects are paths of plain parts") {
  CHECK(IsObjectKey("a"));
  CHECK(IsObjectKey("segments/00/0000002a-1.seg"));
  CHECK(IsObjectKey("A_b-c.9/..."));
  CHECK(IsObjectKey(std::string(kMaxObjectKeyBytes, 'k')));
}

TEST_CASE("Keys that services or tools treat specially are refused") {
  for (const std::string key : {"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a b",
                                "a+b", "a%2fb", "ä", "a?b", "a\\b", "a*"}) {
    CAPTURE(key);
    CHECK_FALSE(IsObjectKey(key));
  }
  CHECK_FALSE(IsObjectKey(std::string("a\0b", 3)));
  CHECK_FALSE(IsObjectKey(std::string(kMaxObjectKeyBytes + 1, 'k')));
}

}  // namespace
}  // namespace siltfs
