#include "fs/inodes/known_names.h"

#include <fmt/format.h>

#include <string>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::string NameOf(size_t number) { return fmt::format("name {}", number); }

TEST_CASE("known names contain what was added, and hardly anything else") {
  KnownNames names;
  CHECK_FALSE(names.MayContain(""));
  CHECK_FALSE(names.MayContain("a"));
  for (size_t added = 0; added < KnownNames::kMost; ++added) {
    names.Add(NameOf(added));
    names.Add(NameOf(added));  // counts once
    REQUIRE(names.MayContain(NameOf(added)));
  }
  for (size_t number = 0; number < KnownNames::kMost; ++number)
    REQUIRE(names.MayContain(NameOf(number)));
  size_t others = 0;
  for (size_t number = 0; number < 10'000; ++number)
    others += names.MayContain(NameOf(KnownNames::kMost + number)) ? 1 : 0;
  CHECK(others <= 1);
}

TEST_CASE("too many names are not known") {
  KnownNames names;
  for (size_t number = 0; number <= KnownNames::kMost; ++number) names.Add(NameOf(number));
  CHECK(names.MayContain(NameOf(0)));
  CHECK(names.MayContain(NameOf(KnownNames::kMost)));
  CHECK(names.MayContain("any other name"));
}

}  // namespace
}  // namespace siltfs::testing
