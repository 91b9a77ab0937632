#include "store/segment/segment_files.h"

#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

void Touch(Env& env, const std::string& path) {
  auto file = Must(env.OpenFile(path, {.mode = OpenMode::kCreate}));
  REQUIRE_OK(file->Sync());
}

}  // namespace

TEST_CASE(
    "A segment's path has the id's upper bits in the directory and the whole id in the name") {
  CHECK(SegmentPath("/s", 1) == "/s/segments/000000/00000001.seg");
  CHECK(SegmentPath("/s", 0x3ff) == "/s/segments/000000/000003ff.seg");
  CHECK(SegmentPath("/s", 0x400) == "/s/segments/000001/00000400.seg");
  CHECK(SegmentPath("/s", 0xffffffff) == "/s/segments/3fffff/ffffffff.seg");
  CHECK(TemporarySegmentPath("/s", 1) == "/s/segments/000000/00000001.seg.new");
}

TEST_CASE("Only exact segment names are parsed as segment names") {
  CHECK(ParseSegmentFileName("0000abcd.seg") == SegmentId{0xabcd});
  for (const char* name :
       {"", ".seg", "0000ABCD.seg", "abcd.seg", "00000abcd.seg", "0000abcd", "0000abcd.seg.new",
        "0000abcg.seg", "00000000.seg", "+000abcd.seg", "0x00abcd.seg"}) {
    CAPTURE(name);
    CHECK_FALSE(ParseSegmentFileName(name).has_value());
  }
}

TEST_CASE("Listing sorts the segments and reports other entries") {
  TestStore store;
  for (SegmentId id : {SegmentId{0x402}, SegmentId{3}, SegmentId{0x401}}) {
    REQUIRE_OK(CreateSegmentDirectory(store.env, store.path, id));
    Touch(store.env, SegmentPath(store.path, id));
  }
  Touch(store.env, TemporarySegmentPath(store.path, 3));
  Touch(store.env, "/store/segments/readme");
  Touch(store.env, "/store/segments/000000/core");
  Touch(store.env, "/store/segments/000000/00000401.seg");  // in the wrong directory
  REQUIRE_OK(store.env.CreateDirectory("/store/segments/1"));
  REQUIRE_OK(store.env.CreateDirectory("/store/segments/000001/00000400.seg"));

  SegmentListing listing = Must(ListSegments(store.env, store.path));
  CHECK(listing.ids == std::vector<SegmentId>{3, 0x401, 0x402});
  CHECK(listing.temporaries == std::vector<std::string>{"/store/segments/000000/00000003.seg.new"});
  CHECK(listing.strays == std::vector<std::string>{"/store/segments/000000/00000401.seg",
                                                   "/store/segments/000000/core",
                                                   "/store/segments/000001/00000400.seg",
                                                   "/store/segments/1", "/store/segments/readme"});
}

TEST_CASE("Listing a store without segments fails as not found") {
  SimEnv env;
  REQUIRE_CODE(ListSegments(env, "/nowhere"), kNotFound);
}

TEST_CASE("Created directories survive a power cut") {
  TestStore store;
  store.env.PowerCut();
  CHECK(Must(ListSegments(store.env, store.path)).ids.empty());
  REQUIRE_OK(CreateSegmentDirectory(store.env, store.path, 0x1234));
  store.env.PowerCut();
  CHECK(Must(store.env.ListDirectory(SegmentDirectory(store.path, 0x1234))).empty());
}

TEST_CASE("An existing directory that was not synced is made durable, too") {
  TestStore store;
  REQUIRE_OK(store.env.CreateDirectory(SegmentDirectory(store.path, 1)));
  REQUIRE_OK(CreateSegmentDirectory(store.env, store.path, 1));
  store.env.PowerCut();
  CHECK(Must(store.env.ListDirectory(SegmentDirectory(store.path, 1))).empty());
}

TEST_CASE("A removed segment stays removed after a power cut") {
  TestStore store;
  auto writer = store.Create(9);
  AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Sync());
  REQUIRE_OK(RemoveSegment(store.env, store.path, 9));
  store.env.PowerCut();
  CHECK(Must(ListSegments(store.env, store.path)).ids.empty());
  REQUIRE_CODE(RemoveSegment(store.env, store.path, 9), kNotFound);
}
