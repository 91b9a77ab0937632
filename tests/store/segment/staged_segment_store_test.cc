// How StagedSegmentStore moves a segment from its local file to the other store.
#include "store/segment/staged_segment_store.h"

#include "store/segment/segment_salvage.h"
#include "tests/store/segment/segment_store_bench.h"

using namespace siltfs;
using namespace siltfs::testing;

TEST_CASE("StagedSegmentStore: finds open segments, and segments that were put") {
  SegmentStoreBench bench(StoreKind::kStaged);
  bench.Put(3, ContentOf(3, 10));
  bench.Built(2, ContentOf(2, 10));
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{2, 3});
  CHECK(Must(bench.Read(2)) == ContentOf(2, 10));
  CHECK(Must(bench.Read(3)) == ContentOf(3, 10));
  REQUIRE_OK(bench.store().Remove(2));
  REQUIRE_CODE(bench.Read(2), kNotFound);
}

TEST_CASE("StagedSegmentStore: a segment that is in both stores is listed once") {
  SegmentStoreBench bench(StoreKind::kStaged);
  const SegmentSource source = bench.Built(1, ContentOf(1, 10));
  bench.memory().FailCall({.call = SegmentCall::kPut, .answer_lost = true});
  REQUIRE_CODE(bench.store().Put(1, source), kIoError);
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{1});
  CHECK(Must(bench.Read(1)) == ContentOf(1, 10));
  SECTION("Recover removes the file") {
    CHECK(Must(bench.store().Recover()).ids == std::vector<SegmentId>{1});
    CHECK_FALSE(bench.env().GetFileInfo(source.path).ok());
    CHECK(Must(bench.Read(1)) == ContentOf(1, 10));
  }
  SECTION("the file does not hide a replacement") {
    bench.Replace(1, ContentOf(2, 10));
    CHECK_FALSE(bench.env().GetFileInfo(source.path).ok());
    CHECK(Must(bench.Read(1)) == ContentOf(2, 10));
  }
  SECTION("Remove removes both") {
    REQUIRE_OK(bench.store().Remove(1));
    REQUIRE_CODE(bench.Read(1), kNotFound);
    REQUIRE_CODE(bench.memory().Content(1), kNotFound);
  }
}

TEST_CASE("StagedSegmentStore: a replaced local segment moves to the other store") {
  SegmentStoreBench bench(StoreKind::kStaged);
  const SegmentSource old_file = bench.Built(1, ContentOf(1, 10));
  bench.memory().FailCall({.call = SegmentCall::kReplace, .code = StatusCode::kNoSpace});
  REQUIRE_CODE(bench.store().Replace(1, bench.Replacement(1, ContentOf(2, 10))), kNoSpace);
  CHECK(Must(bench.Read(1)) == ContentOf(1, 10));
  bench.Replace(1, ContentOf(2, 10));
  CHECK_FALSE(bench.env().GetFileInfo(old_file.path).ok());
  CHECK(Must(bench.memory().Content(1)) == ContentOf(2, 10));
}

TEST_CASE("StagedSegmentStore: Recover does not change the content after a failed replacement") {
  SegmentStoreBench bench(StoreKind::kStaged);
  bench.Built(1, ContentOf(1, 10));
  const bool answer_lost = GENERATE(false, true);
  bench.memory().FailCall({.call = SegmentCall::kReplace, .answer_lost = answer_lost});
  REQUIRE_CODE(bench.store().Replace(1, bench.Replacement(1, ContentOf(2, 10))), kIoError);
  const std::string before = Must(bench.Read(1));
  CHECK(before == ContentOf(answer_lost ? 2 : 1, 10));
  REQUIRE_OK(bench.store().Recover());
  CHECK(Must(bench.Read(1)) == before);
}

// In a bucket, a fenced writer may have put it.
TEST_CASE("StagedSegmentStore: another content does not take the place of a local file") {
  SegmentStoreBench bench(StoreKind::kStaged);
  bench.Put(1, ContentOf(1, 10));
  const SegmentSource local = bench.Built(1, ContentOf(2, 10));
  CHECK(Must(bench.store().Recover()).ids == std::vector<SegmentId>{1});
  CHECK(Must(bench.Read(1)) == ContentOf(2, 10));
  REQUIRE_OK(bench.store().FinishPuts([](SegmentId) { return true; }));
  CHECK(Must(bench.Read(1)) == ContentOf(2, 10));
  bench.memory().FailCall({.call = SegmentCall::kReplace, .code = StatusCode::kNoSpace});
  REQUIRE_CODE(bench.store().Replace(1, bench.Replacement(1, ContentOf(3, 10))), kNoSpace);
  CHECK(Must(bench.Read(1)) == ContentOf(2, 10));
  bench.Replace(1, ContentOf(3, 10));
  CHECK_FALSE(bench.env().GetFileInfo(local.path).ok());
  CHECK(Must(bench.Read(1)) == ContentOf(3, 10));
}

TEST_CASE("StagedSegmentStore: salvage replaces another content of the segment that it seals") {
  SegmentStoreBench bench(StoreKind::kStaged);
  TestStore made;
  {
    auto writer = made.Create(1);
    AppendAll(*writer, made.codec, kSmallSegment);
    REQUIRE_OK(writer->Sync());
  }
  bench.Put(1, ContentOf(1, 10));
  const SegmentSource local = bench.Built(1, made.FileBytes(1));
  const auto salvaged =
      SalvageSegment(bench.env(), bench.path(), bench.store(), made.Identity(1), {});
  REQUIRE_OK(salvaged);
  CHECK(salvaged->outcome == SalvageOutcome::kSealed);
  CHECK_FALSE(bench.env().GetFileInfo(local.path).ok());
  CHECK(Must(bench.memory().Content(1)).size() > made.FileBytes(1).size());
}

TEST_CASE("StagedSegmentStore: FinishPuts puts the sealed segments and no others") {
  SegmentStoreBench bench(StoreKind::kStaged);
  bench.Built(1, ContentOf(1, 10));
  bench.Built(2, ContentOf(2, 10));
  REQUIRE_OK(bench.store().FinishPuts([](SegmentId id) { return id == 2; }));
  REQUIRE_CODE(bench.memory().Content(1), kNotFound);
  CHECK(Must(bench.memory().Content(2)) == ContentOf(2, 10));
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{1, 2});
}

TEST_CASE("StagedSegmentStore: salvage puts the segment that it seals") {
  SegmentStoreBench bench(StoreKind::kStaged);
  TestStore made;
  {
    auto writer = made.Create(1);
    AppendAll(*writer, made.codec, kSmallSegment);
    REQUIRE_OK(writer->Sync());
  }
  const SegmentSource local = bench.Built(1, made.FileBytes(1));
  const auto salvage = [&] {
    return Must(SalvageSegment(bench.env(), bench.path(), bench.store(), made.Identity(1), {}));
  };
  CHECK(salvage().outcome == SalvageOutcome::kSealed);
  CHECK_FALSE(bench.env().GetFileInfo(local.path).ok());
  const std::string sealed = Must(bench.memory().Content(1));
  CHECK(sealed.size() > made.FileBytes(1).size());
  // A crash may come before metadata records that the segment is sealed. So salvage may be
  // repeated.
  CHECK(salvage().outcome == SalvageOutcome::kAlreadySealed);
  CHECK(Must(bench.memory().Content(1)) == sealed);
  // A damaged footer of a segment that was put is made again.
  REQUIRE_OK(bench.memory().Corrupt(1, sealed.size() - 80, 1));
  CHECK(salvage().outcome == SalvageOutcome::kSealed);
  CHECK(Must(bench.memory().Content(1)) == sealed);
}
