// The names of objects and local files (store/bucket/bucket_names.h).
#include "store/bucket/bucket_names.h"

#include "store/object/object_key.h"
#include "tests/support/catch.h"

using namespace siltfs;

TEST_CASE("bucket names: keys are exactly those of the format") {
  const ContentId id{0xabcdef, 0x100000002};
  const std::string key = SegmentObjectKey(id);
  CHECK(key == "segments/ef/00abcdef-0000000100000002");
  CHECK(IsObjectKey(key));
  CHECK(ParseSegmentObjectKey(key) == id);
  CHECK(key.starts_with(SegmentObjectStem(id.segment) + "-"));
  CHECK(ParseSegmentStem("00abcdef") == id.segment);
  for (const char* wrong :
       {"", "segments/", "segments/ef/00abcdef", "segments/ee/00abcdef-0000000100000002",
        "segments/ef/00abcdef-000000010000000", "segments/ef/00abcdef-00000001000000020",
        "segments/ef/00ABCDEF-0000000100000002", "segments/00/00000000-0000000100000002",
        "xegments/ef/00abcdef-0000000100000002", "segments/ef/00abcdef_0000000100000002"}) {
    INFO(wrong);
    CHECK_FALSE(ParseSegmentObjectKey(wrong).has_value());
  }
  CHECK_FALSE(ParseSegmentStem("00000000").has_value());
  CHECK_FALSE(ParseSegmentStem("00abcdef.seg").has_value());
}

TEST_CASE("bucket names: local files tell the content and its state") {
  const SegmentContent content{{7, 9}, 0x2000};
  const std::string waiting = LocalFilePath("/d", content, LocalFileKind::kWaiting);
  const std::string image = LocalFilePath("/d", content, LocalFileKind::kImage);
  CHECK(waiting == "/d/files/00000007-0000000000000009-00002000.put");
  CHECK(image == "/d/files/00000007-0000000000000009-00002000.obj");
  const auto parsed = ParseLocalFileName("00000007-0000000000000009-00002000.obj");
  REQUIRE(parsed.has_value());
  CHECK(parsed->content == content);
  CHECK(parsed->kind == LocalFileKind::kImage);
  CHECK(ParseLocalFileName("00000007-0000000000000009-00002000.put")->kind ==
        LocalFileKind::kWaiting);
  CHECK_FALSE(ParseLocalFileName("00000007-0000000000000009-00002000").has_value());
  CHECK_FALSE(ParseLocalFileName("00000007-0000000000000009-00002000.obj~").has_value());
  CHECK_FALSE(ParseLocalFileName("00000000-0000000000000009-00002000.obj").has_value());
}

TEST_CASE("bucket names: tombstones tell the content and the position") {
  const Tombstone tombstone{{7, 9}, 0x123};
  CHECK(TombstonePath("/d", tombstone) == "/d/removed/00000007-0000000000000009-0000000000000123");
  CHECK(ParseTombstoneName("00000007-0000000000000009-0000000000000123") == tombstone);
  CHECK_FALSE(ParseTombstoneName("00000007-0000000000000009").has_value());
}
