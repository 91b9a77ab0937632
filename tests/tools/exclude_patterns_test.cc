// The patterns of siltfs import --exclude.
#include "tools/import/exclude_patterns.h"

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

bool Excludes(const std::string& pattern, const std::string& path, bool directory = false) {
  return ExcludePatterns({pattern}).Matches(path, directory);
}

}  // namespace

TEST_CASE("A pattern without a slash matches the last name at any depth") {
  CHECK(Excludes("*.o", "a.o"));
  CHECK(Excludes("*.o", "deep/er/a.o"));
  CHECK_FALSE(Excludes("*.o", "a.o/b"));
  CHECK_FALSE(Excludes("a", "ab"));
}

TEST_CASE("A pattern with a slash matches the whole path") {
  CHECK(Excludes("/a", "a"));
  CHECK_FALSE(Excludes("/a", "b/a"));
  CHECK(Excludes("a/*", "a/b"));
  CHECK_FALSE(Excludes("a/*", "a/b/c"));
  CHECK_FALSE(Excludes("a/b", "x/a/b"));
}

TEST_CASE("A slash at the end makes a pattern match directories only") {
  CHECK(Excludes("cache/", "x/cache", /*directory=*/true));
  CHECK_FALSE(Excludes("cache/", "x/cache"));
  CHECK(Excludes("/a/b/", "a/b", /*directory=*/true));
}

TEST_CASE("Only ** matches slashes") {
  CHECK(Excludes("a/**", "a/b/c"));
  CHECK(Excludes("**/c", "a/b/c"));
  CHECK_FALSE(Excludes("**/c", "c"));
  CHECK(Excludes("s/*/gen/**", "s/a/gen/x/y"));
  CHECK_FALSE(Excludes("s/*/gen/**", "s/a/b/gen/x"));
  CHECK(Excludes("a/**/b/**/c", "a/1/b/2/3/c"));
  CHECK(Excludes("a/**/b/**/c", "a/b/b/x/b/2/c"));
  CHECK_FALSE(Excludes("a/**/b/**/c", "a/1/b/c"));
  CHECK(Excludes("/a**z", "abc/xyz"));
  CHECK_FALSE(Excludes("/a**z", "abc/xy"));
  CHECK(Excludes("**", "any/thing"));
}

TEST_CASE("Many ** in a pattern do not take long") {
  const std::string path(200, 'a');
  CHECK_FALSE(Excludes("/a**a**a**a**a**a**a**a**b", path + "/" + path));
  CHECK(Excludes("/a**a**a**a**a**a**a**a**a", path + "/" + path));
}

TEST_CASE("Without patterns nothing is excluded") {
  CHECK(ExcludePatterns({}).empty());
  CHECK_FALSE(ExcludePatterns({}).Matches("a", true));
}

}  // namespace siltfs::testing
