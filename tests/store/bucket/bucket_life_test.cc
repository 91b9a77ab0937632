// The life of a segment in a BucketSegmentStore: put, upload, replacement, removal, restart.
#include "tests/store/bucket/bucket_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

class TestGate final : public CommitGate {
 public:
  uint64_t Position() override { return position; }
  bool MayReplace(uint64_t wanted) override { return wanted <= shipped; }
  bool MayDelete(uint64_t wanted) override { return wanted <= released; }

  uint64_t position = 0;
  uint64_t shipped = 0;
  uint64_t released = 0;
};

std::string KeyOf(SegmentId id, uint64_t generation) { return SegmentObjectKey({id, generation}); }

}  // namespace

TEST_CASE("bucket: a segment waits in its file, and then becomes an object that verifies itself") {
  BucketBench bench;
  const std::string content = RandomContent(1, 300 * kKiB);
  bench.Put(5, content);
  CHECK(bench.Waiting().size() == 1);
  CHECK(bench.objects().Keys().empty());
  CHECK(Must(bench.Read(5)) == content);
  BucketStatus status = bench.store().GetStatus();
  CHECK(status.uploads.waiting == 1);
  CHECK(status.uploads.waiting_bytes == content.size());
  CHECK(DescribeUploads(status.uploads) ==
        "1 segment (300.0 KiB) waits for upload, the oldest for 0 s");

  bench.Work();
  REQUIRE(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 1)});
  const std::string object = bench.objects().Content(KeyOf(5, 1)).value();
  CHECK(object.substr(0, content.size()) == content);
  REQUIRE_OK(BlockChecksums::Decode({{5, 1}, static_cast<uint32_t>(content.size())},
                                    AsBytes(object).subspan(content.size())));
  CHECK(bench.Waiting().empty());
  CHECK(bench.Images().size() == 1);
  status = bench.store().GetStatus();
  CHECK(status.uploads.waiting == 0);
  CHECK(status.uploads.uploaded == 1);
  CHECK(status.uploads.uploaded_bytes == content.size());
  CHECK(DescribeUploads(status.uploads).empty());
  const uint64_t gets = bench.objects().Calls(ObjectCall::kGet);
  CHECK(Must(bench.Read(5)) == content);
  CHECK(bench.objects().Calls(ObjectCall::kGet) == gets);
}

TEST_CASE("bucket: a confirmed upload is not repeated after a restart") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.Reopen();
  bench.Work();
  CHECK(bench.objects().Calls(ObjectCall::kPut) == 1);
  CHECK(Must(bench.Read(5)) == RandomContent(1, 1000));
}

TEST_CASE("bucket: what waits for upload is uploaded after a restart") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  bench.PowerCut();
  CHECK(Must(bench.Read(5)) == RandomContent(1, 1000));
  REQUIRE_OK(bench.store().FinishPuts([](SegmentId) { return true; }));
  CHECK(bench.store().GetStatus().uploads.waiting == 1);
  bench.Work();
  CHECK(bench.objects().Keys().size() == 1);
}

TEST_CASE("bucket: if the answer of a PUT is lost, the object is compared and not sent again") {
  BucketBench bench;
  bench.objects().FailCall({.call = ObjectCall::kPut, .effect = ObjectFault::Effect::kAnswerLost});
  bench.Put(5, RandomContent(1, 1000));
  bench.Work();
  CHECK(bench.store().GetStatus().uploads.waiting == 1);
  CHECK(bench.store().GetStatus().uploads.failures == 1);
  const bool restart = GENERATE(false, true);
  if (restart) bench.PowerCut();
  bench.Work();
  CHECK(bench.store().GetStatus().uploads.waiting == 0);
  CHECK(bench.objects().Calls(ObjectCall::kPut) == 1);
  CHECK(bench.Images().size() == 1);
}

TEST_CASE("bucket: an object of another writer is never replaced") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  // An intact object under the same key, with other bytes.
  BucketBench other;
  // Of the same size, smaller and larger.
  const size_t size = GENERATE(1000, 900, 3'000'000);
  other.PutUploaded(5, RandomContent(2, size));
  const std::string foreign = other.objects().Content(KeyOf(5, 1)).value();
  bench.objects().SetContent(KeyOf(5, 1), foreign);
  bench.Work();
  bench.Work();
  CHECK(bench.objects().Content(KeyOf(5, 1)).value() == foreign);
  const BucketStatus status = bench.store().GetStatus();
  CHECK(status.uploads.waiting == 1);
  CHECK(status.uploads.last_error.find("another content under this key") != std::string::npos);
  CHECK(Must(bench.Read(5)) == RandomContent(1, 1000));
}

TEST_CASE("bucket: an object that was damaged before the upload was confirmed is sent again") {
  BucketBench bench;
  bench.objects().FailCall({.call = ObjectCall::kPut, .effect = ObjectFault::Effect::kAnswerLost});
  bench.Put(5, RandomContent(1, 1000));
  bench.Work();
  std::string object = bench.objects().Content(KeyOf(5, 1)).value();
  object.back() = static_cast<char>(object.back() ^ 1);
  bench.objects().SetContent(KeyOf(5, 1), object);
  bench.Work();
  CHECK(bench.store().GetStatus().uploads.waiting == 0);
  bench.LoseMachine();
  CHECK(Must(bench.Read(5)) == RandomContent(1, 1000));
}

TEST_CASE("bucket: the old object of a replaced segment goes after the new one has come") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.Replace(5, RandomContent(2, 800));
  bench.objects().FailCall({.call = ObjectCall::kPut});
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 1)});
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 2)});
  CHECK(bench.Images().size() == 1);
  bench.LoseMachine();
  CHECK(Must(bench.Read(5)) == RandomContent(2, 800));
}

TEST_CASE("bucket: a content that is replaced before its upload is not uploaded") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  bench.Replace(5, RandomContent(2, 800));
  bench.Work();
  CHECK(bench.objects().Calls(ObjectCall::kPut) == 1);
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 2)});
  CHECK(bench.objects().Calls(ObjectCall::kRemove) == 0);
}

TEST_CASE("bucket: if the disk is lost between the upload and the deletion, the new content wins") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.Replace(5, RandomContent(2, 800));
  bench.objects().FailCall({.call = ObjectCall::kRemove});
  REQUIRE_CODE(bench.store().RunBackground(), kIoError);
  CHECK(bench.objects().Keys().size() == 2);
  bench.LoseMachine();
  CHECK(Must(bench.Read(5)) == RandomContent(2, 800));
  REQUIRE_OK(bench.store().Recover());
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 2)});
}

TEST_CASE("bucket: a removal is durable before the object is deleted") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.objects().FailCall({.call = ObjectCall::kRemove, .permanent = true});
  REQUIRE_OK(bench.store().Remove(5));
  REQUIRE_CODE(bench.store().RunBackground(), kIoError);
  CHECK(bench.objects().Keys().size() == 1);
  bench.PowerCut();
  CHECK(Must(bench.store().List()).ids.empty());
  REQUIRE_CODE(bench.Read(5), kNotFound);
  bench.objects().ClearFaults();
  REQUIRE_OK(bench.store().Recover());
  CHECK(bench.store().GetStatus().deletions_waiting == 1);
  bench.Work();
  CHECK(bench.objects().Keys().empty());
  CHECK(bench.Files("/cache/files").empty());
  CHECK(bench.Files("/cache/removed").empty());
  CHECK(bench.store().GetStatus().deleted == 1);
}

TEST_CASE("bucket: an object that cannot be deleted does not keep the others") {
  BucketBench bench;
  for (SegmentId id = 1; id <= 5; ++id) bench.PutUploaded(id, RandomContent(id, 100));
  bench.objects().FailCall(
      {.call = ObjectCall::kRemove, .permanent = true, .key_part = "00000002-"});
  bench.objects().FailCall(
      {.call = ObjectCall::kRemove, .permanent = true, .key_part = "00000004-"});
  for (SegmentId id = 1; id <= 5; ++id) REQUIRE_OK(bench.store().Remove(id));
  for (int run = 0; run < 3; ++run) REQUIRE_CODE(bench.store().RunBackground(), kIoError);
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(2, 2), KeyOf(4, 4)});
  CHECK(bench.store().GetStatus().deletions_waiting == 2);
  bench.objects().ClearFaults();
  bench.Work();
  CHECK(bench.objects().Keys().empty());
  CHECK(bench.Files("/cache/removed").empty());
}

TEST_CASE("bucket: a segment that waits is not called uploaded before the bucket is listed") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 100));
  bench.Put(2, RandomContent(2, 100));
  bench.Reopen();
  SECTION("when it can be listed") {
    CHECK_FALSE(bench.store().IsUploaded(2));
    CHECK(bench.store().IsUploaded(1));
    CHECK(bench.store().IsUploaded(3));
  }
  SECTION("when it cannot") {
    bench.objects().FailCall({.call = ObjectCall::kList, .permanent = true});
    for (SegmentId id = 1; id <= 3; ++id) CHECK_FALSE(bench.store().IsUploaded(id));
  }
}

TEST_CASE("bucket: a segment that was removed before its upload leaves nothing") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  REQUIRE_OK(bench.store().Remove(5));
  bench.Work();
  bench.PowerCut();  // brings the tombstone back, which does no harm
  CHECK(Must(bench.store().List()).ids.empty());
  bench.Work();
  CHECK(bench.objects().Calls(ObjectCall::kPut) == 0);
  CHECK(bench.Files("/cache/files").empty());
  CHECK(bench.Files("/cache/removed").empty());
}

TEST_CASE("bucket: an object is not deleted while it has readers") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.DropImages();
  auto reader = Must(bench.store().Open(5));
  SECTION("of a segment that was removed") { REQUIRE_OK(bench.store().Remove(5)); }
  SECTION("of a segment that was replaced") { bench.Replace(5, RandomContent(2, 500)); }
  bench.Work();
  CHECK(Must(ReadWhole(*reader)) == RandomContent(1, 1000));
  bench.Work();
  CHECK(bench.objects().Content(KeyOf(5, 1)).ok());
  reader = nullptr;
  bench.Work();
  CHECK_FALSE(bench.objects().Content(KeyOf(5, 1)).ok());
  for (const std::string& path : bench.Files("/cache/files"))
    CHECK(path.find("00000005-0000000000000001") == std::string::npos);
}

TEST_CASE("bucket: a reader keeps a content that was removed before its upload") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  auto reader = Must(bench.store().Open(5));
  REQUIRE_OK(bench.store().Remove(5));
  bench.Work();
  CHECK(bench.Files("/cache/files").empty());
  CHECK(Must(ReadWhole(*reader)) == RandomContent(1, 1000));
  CHECK(bench.store().GetStatus().cache.used_bytes == 1000);
  reader = nullptr;
  CHECK(bench.store().GetStatus().cache.used_bytes == 0);
}

TEST_CASE("bucket: another machine finds all segments in the bucket") {
  BucketBench bench;
  for (SegmentId id = 1; id <= 2500; id += 499) bench.PutUploaded(id, RandomContent(id, 100));
  bench.objects().SetContent("segments/00/other", "");
  bench.LoseMachine();
  const SegmentListing listing = Must(bench.store().Recover());
  CHECK(listing.ids == std::vector<SegmentId>{1, 500, 999, 1498, 1997, 2496});
  CHECK(listing.strays == std::vector<std::string>{"memory:/segments/00/other"});
  for (const SegmentId id : listing.ids) CHECK(Must(bench.Read(id)) == RandomContent(id, 100));
  bench.PutUploaded(7, RandomContent(7, 100));  // with a generation of its own
  CHECK(bench.objects().Keys().size() == 8);
}

TEST_CASE("bucket: a replacement waits until the bucket has its intent, and so does the deletion") {
  TestGate gate;
  BucketOptions options = BucketBench::Options();
  options.gate = &gate;
  BucketBench bench(options);
  bench.PutUploaded(5, RandomContent(1, 1000));  // needs no commit in the bucket
  CHECK(bench.objects().Keys().size() == 1);
  gate.position = 7;
  bench.Replace(5, RandomContent(2, 800));
  const bool restart = GENERATE(false, true);
  if (restart) bench.PowerCut();
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 1)});
  gate.shipped = 7;
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 1), KeyOf(5, 2)});
  gate.released = 7;
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 2)});

  gate.position = 9;
  REQUIRE_OK(bench.store().Remove(5));
  gate.position = 20;
  if (restart) bench.PowerCut();
  bench.Work();
  CHECK(bench.objects().Keys().size() == 1);
  gate.released = 9;  // the position of the removal survives a restart
  bench.Work();
  CHECK(bench.objects().Keys().empty());
}

TEST_CASE("bucket: a replacement of a segment that the bucket lacks waits for no commit") {
  TestGate gate;
  BucketOptions options = BucketBench::Options();
  options.gate = &gate;
  BucketBench bench(options);
  gate.position = 7;
  bench.Put(5, RandomContent(1, 1000));
  bench.Replace(5, RandomContent(2, 800));
  bench.Work();
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, 2)});
}

TEST_CASE(
    "bucket: the contents of a later writer win, and the earlier one may not change any more") {
  BucketBench bench;
  bench.PutUploaded(5, RandomContent(1, 1000));
  bench.options().epoch = 3;
  bench.Reopen();
  bench.Replace(5, RandomContent(2, 800));
  bench.Work();
  const uint64_t later = (uint64_t{3} << 32) + 1;
  CHECK(bench.objects().Keys() == std::vector<std::string>{KeyOf(5, later)});
  bench.options().epoch = 2;
  bench.Reopen();
  CHECK(Must(bench.Read(5)) == RandomContent(2, 800));
  const Status refused = bench.store().Replace(5, bench.Source(RandomContent(3, 10)));
  REQUIRE_CODE(refused, kStale);
  REQUIRE_CODE(bench.store().Remove(5), kStale);
}

TEST_CASE("bucket: WaitForUploads returns when the bucket has everything", "[race]") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  const Status late = bench.store().WaitForUploads(std::chrono::nanoseconds(0));
  REQUIRE_CODE(late, kIoError);
  bench.Work();
  REQUIRE_OK(bench.store().WaitForUploads(std::chrono::nanoseconds(0)));
}

TEST_CASE("bucket: the bytes in the bucket and those that wait are known, also to a reader") {
  BucketBench bench;
  const auto check = [&bench](uint64_t waiting, uint64_t waiting_bytes, uint64_t bytes) {
    const BucketStatus status = bench.store().GetStatus();
    CHECK(status.uploads.waiting == waiting);
    CHECK(status.uploads.waiting_bytes == waiting_bytes);
    CHECK(status.segment_bytes == bytes);
  };
  bench.PutUploaded(1, RandomContent(1, 1000));
  bench.Put(2, RandomContent(2, 200));
  bench.Put(3, RandomContent(3, 30));
  bench.Replace(1, RandomContent(4, 4000));
  check(3, 4230, 4230);
  // A store that only reads lists what there is, and uploads nothing.
  bench.Reopen();
  REQUIRE_OK(bench.store().List());
  check(3, 4230, 4230);
  // A store that writes gives the same contents to the uploads.
  REQUIRE_OK(bench.store().Recover());
  check(3, 4230, 4230);
  bench.Work();
  check(0, 0, 4230);
  REQUIRE_OK(bench.store().Remove(2));
  check(0, 0, 4030);
  bench.Reopen();
  REQUIRE_OK(bench.store().List());
  check(0, 0, 4030);
}
