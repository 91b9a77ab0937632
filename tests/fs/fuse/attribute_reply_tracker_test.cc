#include "fs/fuse/attribute_reply_tracker.h"

#include "tests/support/catch.h"

namespace siltfs::fuse {
namespace {

constexpr InodeNumber kDirectory = 7;
constexpr AttributeReplyTracker::Thread kMe = 100;
constexpr AttributeReplyTracker::Thread kOther = 200;

// Returns another directory that has the same slot in the tracker's table as kDirectory.
InodeNumber Rival() {
  for (InodeNumber number = kDirectory + 1;; ++number) {
    AttributeReplyTracker told;
    told.NoteMade(kDirectory, kMe);
    told.NoteMade(number, kMe);
    if (told.TakeOthers(kDirectory, kMe)) return number;
  }
}

TEST_CASE("If only the changing thread has replies, a change needs no notification") {
  AttributeReplyTracker told;
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));  // no thread got a reply
  told.NoteReply(kDirectory, kMe);
  told.NoteReply(kDirectory, kMe);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
}

TEST_CASE(
    "After a reply to another thread the next change needs a notification, and later ones do not") {
  AttributeReplyTracker told;
  SECTION("another") { told.NoteReply(kDirectory, kOther); }
  SECTION("its maker, and another thread") {
    told.NoteMade(kDirectory, kMe);
    told.NoteReply(kDirectory, kOther);
  }
  SECTION("another thread, and the changing one") {
    told.NoteReply(kDirectory, kOther);
    told.NoteReply(kDirectory, kMe);
  }
  CHECK(told.TakeOthers(kDirectory, kMe));
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  CHECK_FALSE(told.TakeOthers(kDirectory, kOther));
  told.NoteReply(kDirectory, kMe);
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  told.NoteReply(kDirectory, kOther);
  CHECK(told.TakeOthers(kDirectory, kMe));
}

TEST_CASE("A change by another thread than the one with the reply needs a notification") {
  AttributeReplyTracker told;
  told.NoteMade(kDirectory, kMe);
  CHECK_FALSE(told.TakeOthers(kDirectory, kMe));
  CHECK(told.TakeOthers(kDirectory, kOther));
}

TEST_CASE("Unknown threads do not count as one and the same thread") {
  constexpr auto kUnknown = AttributeReplyTracker::kUnknownThread;
  AttributeReplyTracker told;
  SECTION("first reply") { told.NoteReply(kDirectory, kUnknown); }
  SECTION("reply after a notification") {
    told.NoteReply(kDirectory, kOther);
    REQUIRE(told.TakeOthers(kDirectory, kMe));
    told.NoteReply(kDirectory, kUnknown);
  }
  SECTION("making it") { told.NoteMade(kDirectory, kUnknown); }
  SECTION("additional reply") {
    told.NoteReply(kDirectory, kMe);
    told.NoteReply(kDirectory, kUnknown);
    CHECK(told.TakeOthers(kDirectory, kMe));
    told.NoteReply(kDirectory, kUnknown);
  }
  CHECK(told.TakeOthers(kDirectory, kUnknown));
}

TEST_CASE("After its eviction from the table, a directory counts as replied to several threads") {
  const InodeNumber rival = Rival();
  AttributeReplyTracker told;
  SECTION("changed") {
    told.NoteReply(kDirectory, kOther);
    told.NoteMade(rival, kMe);
    CHECK_FALSE(told.TakeOthers(rival, kMe));  // the rival is new: there is no other reply
    CHECK(told.TakeOthers(kDirectory, kMe));
    CHECK(told.TakeOthers(rival, kMe));  // the rival has been evicted, too
  }
  SECTION("new reply") {
    told.NoteReply(kDirectory, kOther);
    told.NoteMade(rival, kMe);
    told.NoteReply(kDirectory, kMe);
    CHECK(told.TakeOthers(kDirectory, kMe));
  }
  SECTION("new reply after the notification for another directory") {
    told.NoteReply(rival, kOther);
    REQUIRE(told.TakeOthers(rival, kMe));
    told.NoteReply(kDirectory, kMe);
    CHECK(told.TakeOthers(kDirectory, kMe));
  }
}

TEST_CASE("Directories with consecutive numbers do not evict each other") {
  constexpr InodeNumber kCount = 512;
  AttributeReplyTracker told;
  for (InodeNumber number = 1; number <= kCount; ++number) told.NoteMade(number, kMe);
  InodeNumber forgotten = 0;
  for (InodeNumber number = 1; number <= kCount; ++number) {
    if (told.TakeOthers(number, kMe)) ++forgotten;
  }
  CHECK(forgotten == 0);
}

}  // namespace
}  // namespace siltfs::fuse
