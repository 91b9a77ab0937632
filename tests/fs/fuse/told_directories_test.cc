#include "fs/fuse/told_directories.h"

#include "tests/support/catch.h"

namespace siltfs::fuse {
namespace {

constexpr InodeNumber kDirectory = 7;
constexpr ToldDirectories::Thread kMe = 100;
constexpr ToldDirectories::Thread kOther = 200;

// A directory that has the slot of kDirectory.
InodeNumber Rival() {
  for (InodeNumber number = kDirectory + 1;; ++number) {
    ToldDirectories told;
    told.NoteMade(kDirectory, kMe);
    told.NoteMade(number, kMe);
    if (told.TakeOthers(kDirectory, kMe)) return number;
  }
}

TEST_CASE("Who alone was told of a directory changes it without a notification") {
  ToldDirectories told;
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));  // nobody was told
  told.NoteTold(kDirectory, kMe);
  told.NoteTold(kDirectory, kMe);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
}

TEST_CASE("A change is notified if another was told, or several, and then only if one is again") {
  ToldDirectories told;
  SECTION("another") { told.NoteTold(kDirectory, kOther); }
  SECTION("the one who made it, and another") {
    told.NoteMade(kDirectory, kMe);
    told.NoteTold(kDirectory, kOther);
  }
  SECTION("another, and the one who changes it") {
    told.NoteTold(kDirectory, kOther);
    told.NoteTold(kDirectory, kMe);
  }
  CHECK(told.TakeOthers(kDirectory, kMe));
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  CHECK_FALSE(told.TakeOthers(kDirectory, kOther));
  told.NoteTold(kDirectory, kMe);
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  told.NoteTold(kDirectory, kOther);
  CHECK(told.TakeOthers(kDirectory, kMe));
}

TEST_CASE("What one was told another changes with a notification") {
  ToldDirectories told;
  told.NoteMade(kDirectory, kMe);
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  CHECK(told.TakeOthers(kDirectory, kOther));
}

TEST_CASE("Unknown threads are not taken for one") {
  constexpr auto kUnknown = ToldDirectories::kUnknownThread;
  ToldDirectories told;
  SECTION("told first") { told.NoteTold(kDirectory, kUnknown); }
  SECTION("told after a notification") {
    told.NoteTold(kDirectory, kOther);
    REQUIRE(told.TakeOthers(kDirectory, kMe));
    told.NoteTold(kDirectory, kUnknown);
  }
  SECTION("making it") { told.NoteMade(kDirectory, kUnknown); }
  SECTION("told in addition") {
    told.NoteTold(kDirectory, kMe);
    told.NoteTold(kDirectory, kUnknown);
    CHECK(told.TakeOthers(kDirectory, kMe));
    told.NoteTold(kDirectory, kUnknown);
  }
  CHECK(told.TakeOthers(kDirectory, kUnknown));
}

TEST_CASE("What was forgotten for another directory counts as told to several") {
  const InodeNumber rival = Rival();
  ToldDirectories told;
  SECTION("changed") {
    told.NoteTold(kDirectory, kOther);
    told.NoteMade(rival, kMe);
    CHECK_FALSE(told.TakeOthers(rival, kMe));  // a new one: nobody else can have been told
    CHECK(told.TakeOthers(kDirectory, kMe));
    CHECK(told.TakeOthers(rival, kMe));  // now forgotten, too
  }
  SECTION("told again") {
    told.NoteTold(kDirectory, kOther);
    told.NoteMade(rival, kMe);
    told.NoteTold(kDirectory, kMe);
    CHECK(told.TakeOthers(kDirectory, kMe));
  }
  SECTION("told again after the notification of another") {
    told.NoteTold(rival, kOther);
    REQUIRE(told.TakeOthers(rival, kMe));
    told.NoteTold(kDirectory, kMe);
    CHECK(told.TakeOthers(kDirectory, kMe));
  }
}

TEST_CASE("A tree's directories, numbered in a row, do not forget each other") {
  constexpr InodeNumber kCount = 512;
  ToldDirectories told;
  for (InodeNumber number = 1; number <= kCount; ++number) told.NoteMade(number, kMe);
  InodeNumber forgotten = 0;
  for (InodeNumber number = 1; number <= kCount; ++number) {
    if (told.TakeOthers(number, kMe)) ++forgotten;
  }
  CHECK(forgotten == 0);
}

}  // namespace
}  // namespace siltfs::fuse
