// What every SegmentStore guarantees (store/segment/segment_store.h).
#include <atomic>
#include <thread>

#include "tests/store/segment/segment_store_bench.h"
#include "tests/support/crash_points.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

StoreKind AnyKind() {
  const StoreKind kind = GENERATE(StoreKind::kDirectory, StoreKind::kMemory, StoreKind::kStaged,
                                  StoreKind::kBucketWaiting, StoreKind::kBucket);
  UNSCOPED_INFO("kind: " << NameOfKind(kind));
  return kind;
}

std::string ReadRange(const ReadableFile& file, uint64_t offset, size_t size) {
  Bytes bytes(size);
  bytes.resize(Must(file.Read(offset, bytes)));
  return std::string(AsText(bytes));
}

// The content of a segment after a crash, when the store has recovered.
Result<std::string> ReadRecovered(SegmentStoreBench& bench, SegmentId id) {
  REQUIRE_OK(bench.store().Recover());
  return bench.Read(id);
}

}  // namespace

TEST_CASE("SegmentStore: a segment that was put is read in any ranges") {
  SegmentStoreBench bench(AnyKind());
  const std::string content = ContentOf(1, 700);
  bench.Put(5, content);
  const auto file = Must(bench.store().Open(5));
  CHECK(Must(file->Size()) == content.size());
  CHECK(ReadRange(*file, 0, content.size()) == content);
  CHECK(ReadRange(*file, 3, 10) == content.substr(3, 10));
  CHECK(ReadRange(*file, 4090, 20) == content.substr(4090, 20));
  CHECK(ReadRange(*file, content.size() - 3, 100) == content.substr(content.size() - 3));
  CHECK(ReadRange(*file, content.size(), 1).empty());
  CHECK(ReadRange(*file, content.size() + 1000, 10).empty());
  CHECK(ReadRange(*file, 8, 0).empty());
}

TEST_CASE("SegmentStore: Put takes its source over, and is durable") {
  SegmentStoreBench bench(AnyKind());
  const std::string content = ContentOf(2, 100);
  SECTION("a file elsewhere") {
    const SegmentSource source = bench.Source(content);
    REQUIRE_OK(bench.store().Put(7, source));
    CHECK_FALSE(bench.env().GetFileInfo(source.path).ok());
  }
  SECTION("the file in which the segment was built") {
    const SegmentSource source = bench.Built(7, content);
    REQUIRE_OK(bench.store().Put(7, source));
    const bool stays = bench.kind() == StoreKind::kDirectory;
    CHECK(bench.env().GetFileInfo(source.path).ok() == stays);
  }
  bench.PowerCut();
  CHECK(Must(bench.Read(7)) == content);
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{7});
}

TEST_CASE("SegmentStore: Put may be repeated with the same content, but not with another one") {
  SegmentStoreBench bench(AnyKind());
  const std::string content = ContentOf(3, 50);
  bench.Put(7, content);
  const SegmentSource again = bench.Source(content);
  REQUIRE_OK(bench.store().Put(7, again));
  CHECK_FALSE(bench.env().GetFileInfo(again.path).ok());
  const Status other = bench.store().Put(7, bench.Source(ContentOf(4, 50)));
  REQUIRE_CODE(other, kAlreadyExists);
  CHECK(other.path() == bench.store().NameOf(7));
  CHECK(Must(bench.Read(7)) == content);
}

TEST_CASE("SegmentStore: List returns all ids in ascending order") {
  SegmentStoreBench bench(AnyKind());
  CHECK(Must(bench.store().List()).ids.empty());
  for (const SegmentId id : {5000, 2, 1023, 1024, 1, 0x12345678}) bench.Put(id, ContentOf(id, 2));
  const SegmentListing listing = Must(bench.store().List());
  CHECK(listing.ids == std::vector<SegmentId>{1, 2, 1023, 1024, 5000, 0x12345678});
  CHECK_FALSE(listing.directories.empty());
  CHECK(listing.temporaries.empty());
  CHECK(listing.strays.empty());
  CHECK(listing.links.empty());
}

TEST_CASE("SegmentStore: Remove is durable, and may be repeated") {
  SegmentStoreBench bench(AnyKind());
  bench.Put(3, ContentOf(3, 10));
  bench.Put(4, ContentOf(4, 10));
  REQUIRE_OK(bench.store().Remove(3));
  REQUIRE_CODE(bench.Read(3), kNotFound);
  bench.PowerCut();
  REQUIRE_CODE(bench.Read(3), kNotFound);
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{4});
  REQUIRE_OK(bench.store().Remove(3));
  REQUIRE_OK(bench.store().Remove(99'999));  // its directory does not exist, either
  CHECK(Must(bench.Read(4)) == ContentOf(4, 10));
}

TEST_CASE("SegmentStore: Replace is durable, and takes its source over") {
  SegmentStoreBench bench(AnyKind());
  bench.Put(3, ContentOf(3, 100));
  const SegmentSource source = bench.Replacement(3, ContentOf(4, 60));
  REQUIRE_OK(bench.store().Replace(3, source));
  CHECK_FALSE(bench.env().GetFileInfo(source.path).ok());
  CHECK(Must(bench.Read(3)) == ContentOf(4, 60));
  bench.PowerCut();
  CHECK(Must(bench.Read(3)) == ContentOf(4, 60));
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{3});
  SECTION("a missing source changes nothing") {
    REQUIRE_CODE(bench.store().Replace(3, source), kNotFound);
    CHECK(Must(bench.Read(3)) == ContentOf(4, 60));
  }
  SECTION("a missing segment is added") {
    REQUIRE_OK(bench.store().Replace(5000, bench.Source(ContentOf(5, 20))));
    bench.PowerCut();
    CHECK(Must(bench.Read(5000)) == ContentOf(5, 20));
  }
}

TEST_CASE("SegmentStore: a reader keeps its content when the segment is replaced or removed") {
  SegmentStoreBench bench(AnyKind());
  const std::string first = ContentOf(1, 600);
  const std::string second = ContentOf(2, 300);
  bench.Put(9, first);
  const auto of_first = Must(bench.store().Open(9));
  bench.Replace(9, second);
  const auto of_second = Must(bench.store().Open(9));
  CHECK(Must(bench.ReadAll(*of_first)) == first);
  CHECK(Must(bench.ReadAll(*of_second)) == second);
  REQUIRE_OK(bench.store().Remove(9));
  CHECK(Must(bench.ReadAll(*of_first)) == first);
  bench.Reopen();  // destroys the SegmentStore of the readers
  CHECK(Must(bench.ReadAll(*of_first)) == first);
  CHECK(Must(bench.ReadAll(*of_second)) == second);
  REQUIRE_CODE(bench.Read(9), kNotFound);
}

TEST_CASE("SegmentStore: errors name the segment, the offset and the cause") {
  SegmentStoreBench bench(AnyKind());
  const Status missing = bench.store().Open(77).status();
  REQUIRE_CODE(missing, kNotFound);
  CHECK(missing.path() == bench.store().NameOf(77));
  CHECK_FALSE(missing.cause().empty());

  bench.Put(8, ContentOf(8, 100));
  const auto file = Must(bench.store().Open(8));
  CHECK(file->path() == bench.store().NameOf(8));
  bench.FailReads();
  Bytes bytes(16);
  const Status failed = file->Read(40, bytes).status();
  REQUIRE_CODE(failed, kIoError);
  CHECK(failed.path() == bench.store().NameOf(8));
  CHECK(failed.offset() == 40);
  CHECK_FALSE(failed.cause().empty());
}

TEST_CASE("SegmentStore: the name of a segment leads back to its id") {
  SegmentStoreBench bench(AnyKind());
  for (const SegmentId id : {1, 1024, 0x7fffffff}) {
    CHECK(bench.store().IdOf(bench.store().NameOf(id)) == id);
  }
  CHECK_FALSE(bench.store().IdOf(bench.store().name()).has_value());
  CHECK_FALSE(bench.store().IdOf("file").has_value());
}

TEST_CASE("SegmentStore: concurrent readers see the old or the new content, never a mix") {
  SegmentStoreBench bench(AnyKind());
  constexpr size_t kWords = 3000;
  constexpr int kReplacements = 60;
  bench.Put(1, ContentOf(0, kWords));
  std::atomic<bool> done = false;
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> listed = 0;
  auto read = [&] {
    while (!done) {
      const auto file = bench.store().Open(1);
      if (!file.ok()) {
        ++wrong;
        continue;
      }
      // In two ranges, so that a replacement can come between them.
      Bytes front(8);
      Bytes back(8);
      const auto first = (*file)->Read(0, front);
      const auto last = (*file)->Read((kWords - 1) * 8, back);
      if (!first.ok() || !last.ok() || *last != 8 || front != back) ++wrong;
      const auto listing = bench.store().List();
      if (!listing.ok() || listing->ids != std::vector<SegmentId>{1}) ++wrong;
      ++listed;
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(read);
  for (int i = 1; i <= kReplacements || listed < 10; ++i)
    bench.Replace(1, ContentOf(static_cast<uint64_t>(i), kWords));
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("SegmentStore: after a power cut at any call, a segment has the old or the new content") {
  const StoreKind kind = GENERATE(StoreKind::kDirectory, StoreKind::kStaged,
                                  StoreKind::kBucketWaiting, StoreKind::kBucket);
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kSubset);
  enum class Change { kPut, kPutBuilt, kReplace, kRemove };
  const auto change = GENERATE(Change::kPut, Change::kPutBuilt, Change::kReplace, Change::kRemove);
  INFO(NameOfKind(kind) << ", change " << static_cast<int>(change));
  const std::string old_content = ContentOf(1, 2000);
  const std::string new_content = ContentOf(2, 1500);
  bool cut = true;
  uint64_t cuts = 0;
  for (uint64_t nth = 1; cut; ++nth) {
    SegmentStoreBench bench(kind);
    bench.Put(1, ContentOf(9, 10));
    bench.Put(2, old_content);
    std::optional<SegmentSource> source;
    if (change == Change::kPut) source.emplace(bench.Source(new_content));
    if (change == Change::kPutBuilt) source.emplace(bench.Built(3, new_content));
    if (change == Change::kReplace) source.emplace(bench.Replacement(2, new_content));
    bench.env().CutAtCall(nth);
    Status done = Status::Ok();
    switch (change) {
      case Change::kPut:
      case Change::kPutBuilt:
        done = bench.store().Put(3, *source);
        break;
      case Change::kReplace:
        done = bench.store().Replace(2, *source);
        break;
      case Change::kRemove:
        done = bench.store().Remove(2);
        break;
    }
    cut = !bench.env().PowerIsOn();
    cuts += cut ? 1 : 0;
    bench.PowerCut({.unsynced = unsynced, .seed = nth, .names_in_any_order = nth % 2 == 0});
    INFO("cut at call " << nth);
    const SegmentId changed = change == Change::kReplace || change == Change::kRemove ? 2 : 3;
    const auto found = ReadRecovered(bench, changed);
    const bool is_new = change == Change::kRemove ? found.status().Is(StatusCode::kNotFound)
                                                  : found.ok() && *found == new_content;
    const bool is_old = changed == 2 ? found.ok() && *found == old_content
                                     : found.status().Is(StatusCode::kNotFound);
    REQUIRE((is_new || is_old));
    if (done.ok()) REQUIRE(is_new);
    done.IgnoreError("the call may fail");
    REQUIRE(Must(bench.Read(1)) == ContentOf(9, 10));
    // The state after recovery is durable.
    bench.PowerCut();
    const auto again = bench.Read(changed);
    REQUIRE(again.ok() == found.ok());
    if (again.ok()) REQUIRE(*again == *found);
    REQUIRE(Must(bench.store().List()).temporaries.empty());
  }
  // If segments are files in the store's directory, and a segment was built at its path there, Put
  // makes no device call. So there is no call at which the power can be cut.
  const bool free = kind == StoreKind::kDirectory && change == Change::kPutBuilt;
  CHECK((cuts == 0) == free);
}

TEST_CASE("SegmentStore: Recover removes unfinished replacements, and may be repeated") {
  SegmentStoreBench bench(GENERATE(StoreKind::kDirectory, StoreKind::kStaged,
                                   StoreKind::kBucketWaiting, StoreKind::kBucket));
  bench.Put(1, ContentOf(1, 10));
  bench.Replacement(1, ContentOf(2, 10));
  CHECK(Must(bench.store().List()).temporaries.size() == 1);
  CHECK(Must(bench.store().Recover()).temporaries.size() == 1);
  CHECK(Must(bench.store().Recover()).temporaries.empty());
  CHECK(Must(bench.store().Recover()).ids == std::vector<SegmentId>{1});
  CHECK(Must(bench.Read(1)) == ContentOf(1, 10));
}
