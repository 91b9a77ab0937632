// A fenced writer puts segments after the next writer has begun, and has looked for such segments.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fs/open/rebuild_index.h"
#include "fs/open/store_metadata.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/schema.h"
#include "fs/repair/repair_store.h"
#include "fs/shipping/bucket_log.h"
#include "store/bucket/bucket_names.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "tests/fs/shipping/site.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kSmallSegments = 16u << 10;

// The segments that have objects.
std::set<std::string> SegmentsIn(const MemoryObjectStore& objects) {
  std::set<std::string> stems;
  for (const std::string& key : objects.Keys()) {
    if (key.starts_with("segments/")) stems.insert(key.substr(0, key.rfind('-')));
  }
  return stems;
}

std::vector<std::string> KeysOfSegments(const MemoryObjectStore& objects) {
  std::vector<std::string> keys;
  for (const std::string& key : objects.Keys()) {
    if (key.starts_with("segments/")) keys.push_back(key);
  }
  return keys;
}

// The codes of what fsck finds in a closed store.
std::set<std::string> FindingsOf(Site& site) {
  BucketSegmentStore segments(*site.env, site.objects(), site.Bucket());
  std::set<std::string> codes;
  CheckOptions options;
  options.store = "/store";
  options.segments = &segments;
  options.on_finding = [&](const Finding& finding) { codes.insert(finding.code); };
  REQUIRE_OK(CheckStore(*site.env, options));
  return codes;
}

// The metadata of a closed store, to change it without the bucket.
std::unique_ptr<KvStore> OpenMetadataOf(Site& site) {
  const auto state = ReadSuperblock(*site.env, "/store");
  REQUIRE_OK(state);
  auto kv = OpenExistingMetadata(*site.env, state->superblock, "/store",
                                 KvStoreOptions::Mode::kOpen, BucketPosition::kKeep);
  REQUIRE_OK(kv);
  return std::move(kv).value();
}

// Both stores are open then, and the bucket has all steps of the history.
void MakeAndTakeOver(Site& site, FileHistory& history, Site& other, uint32_t segment_bytes) {
  site.Make(segment_bytes);
  REQUIRE_OK(site.Open());
  for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
}

TEST_CASE("epoch floors: an epoch tells the objects of earlier epochs from those of the store") {
  EpochFloors floors;
  CHECK(!floors.IsForeign(7, 0));
  floors.Begin(2, {10});
  floors.Begin(5, {20, 0b1010});
  // In epoch 5 the store has put segments of any id, and in epochs 2 to 4 those below 20.
  CHECK(!floors.IsForeign(100, 5));
  CHECK(!floors.IsForeign(19, 4));
  CHECK(floors.IsForeign(18, 4));
  CHECK(!floors.IsForeign(18, 5));
  CHECK(floors.HasEnded(4));
  CHECK(!floors.HasEnded(5));
  CHECK(!floors.IsForeign(17, 4));
  CHECK(floors.IsForeign(16, 4));
  CHECK(floors.IsForeign(20, 4));
  CHECK(!floors.IsForeign(19, 2));
  CHECK(floors.IsForeign(20, 2));
  CHECK(!floors.IsForeign(9, 1));
  CHECK(floors.IsForeign(10, 1));
  CHECK(floors.Encode() == std::string("\1\2\0\0\0\n\0\0\0\0\0\0\0\0\0\0\0"
                                       "\5\0\0\0\24\0\0\0\12\0\0\0\0\0\0\0",
                                       33));
  const auto decoded = EpochFloors::Decode(floors.Encode());
  REQUIRE_OK(decoded);
  CHECK(decoded->Encode() == floors.Encode());
  // All segments were removed, so the floor is lower than before.
  floors.Begin(6, {15});
  CHECK(floors.IsForeign(15, 5));
  CHECK(floors.IsForeign(15, 2));
  CHECK(!floors.IsForeign(14, 5));
  CHECK(floors.IsForeign(10, 1));
  CHECK(floors.Encode().size() == 1 + 2 * 16);
  // The bucket's history has begun again.
  floors.Begin(1, {3});
  CHECK(floors.Encode().size() == 1 + 16);
  for (uint32_t epoch = 2; epoch < 200; ++epoch) floors.Begin(epoch, {10 * epoch});
  CHECK(floors.Encode().size() == 1 + 16 * EpochFloors::kMost);
  CHECK(floors.IsForeign(1990, 198));
  CHECK(!floors.IsForeign(1989, 198));
}

TEST_CASE("epoch floors: a malformed record is refused") {
  EpochFloors floors;
  floors.Begin(2, {10});
  floors.Begin(5, {20, 0b1010});
  const std::string record = floors.Encode();
  REQUIRE_CODE(EpochFloors::Decode(record.substr(1)), kCorruption);
  REQUIRE_CODE(EpochFloors::Decode(record + record), kCorruption);
  REQUIRE_CODE(EpochFloors::Decode("\2" + record.substr(1)), kCorruption);
  REQUIRE_CODE(EpochFloors::Decode(""), kCorruption);
  REQUIRE_CODE(EpochFloors::Decode(record.substr(0, 1) + record.substr(17) + record.substr(1, 16)),
               kCorruption);
  REQUIRE_CODE(EpochFloors::Decode("\1" + std::string(16 * (EpochFloors::kMost + 1), 'x')),
               kCorruption);
}

TEST_CASE("late segments: those with ids that the next writer does not use are no damage") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  FileHistory history(1);
  Site other(objects, 2);
  MakeAndTakeOver(site, history, other, kSmallSegments);
  FileHistory more(2);
  more.states = {history.states.back()};
  for (int i = 0; i < 2; ++i) REQUIRE_OK(more.Step(*other.fs));
  REQUIRE_OK(other.Ship());

  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  const auto before = SegmentsIn(objects);
  REQUIRE_OK(site.session->bucket()->RunBackground());
  const auto late = SegmentsIn(objects);
  REQUIRE(late.size() > before.size());
  other.Close();
  REQUIRE(SegmentsIn(objects) == late);
  other.Check();
  {
    BucketSegmentStore segments(*other.env, objects, other.Bucket());
    IndexRebuildOptions rebuild;
    rebuild.store = "/store";
    rebuild.segments = &segments;
    REQUIRE_OK(RebuildIndex(*other.env, rebuild));
  }
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == more.states.back());
  REQUIRE_OK(other.Ship());
  REQUIRE_OK(other.session->bucket()->RunBackground());
  CHECK(SegmentsIn(objects).size() < late.size());
  other.Close();
  other.Check();
}

TEST_CASE("late segments: one below the floor that metadata has no record of is no damage") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(kSmallSegments);
  FileHistory history(1);
  // The crash leaves ids without a use below the segments of the second epoch.
  for (int epoch = 0; epoch < 2; ++epoch) {
    site.Crash();
    REQUIRE_OK(site.Open());
    for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
    REQUIRE_OK(site.session->bucket()->RunBackground());
    REQUIRE_OK(site.Ship());
  }
  site.Close();
  const std::vector<std::string> keys = KeysOfSegments(objects);
  REQUIRE(!keys.empty());
  std::map<SegmentId, std::string> used;
  for (const std::string& key : keys) used[ParseSegmentObjectKey(key)->segment] = key;
  // An id below those of the second epoch, and an object that was put in it.
  const auto second = used.upper_bound(1000);
  REQUIRE((second != used.begin() && second != used.end()));
  const SegmentId unused = second->first - 5;
  REQUIRE(unused > std::prev(second)->first + 1000);
  REQUIRE(used.rbegin()->first - unused < 50);
  const auto object = ParseSegmentObjectKey(second->second);
  REQUIRE(object->epoch() == 2);
  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  other.Close();
  objects.SetContent(SegmentObjectKey({unused, object->generation}),
                     *objects.Content(second->second));
  CHECK(FindingsOf(other).empty());
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == history.states.back());
  REQUIRE_OK(other.Ship());
  REQUIRE_OK(other.session->bucket()->RunBackground());
  CHECK(KeysOfSegments(objects) == keys);
  other.Close();
  other.Check();
}

TEST_CASE("late segments: one that the next writer has removed meanwhile is no lost metadata") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  FileHistory history(1);
  Site other(objects, 2);
  MakeAndTakeOver(site, history, other, kSmallSegments << 3);  // with blocks of several commits
  other.Close();
  const std::vector<std::string> keys = KeysOfSegments(objects);

  // The first writer goes on with segments of which both have a record.
  for (int i = 0; i < 60; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.session->bucket()->RunBackground());
  std::set<std::string> late;
  for (const std::string& key : KeysOfSegments(objects)) {
    if (std::ranges::find(keys, key) == keys.end()) late.insert(key);
  }
  int removed = 0;
  {
    const auto kv = OpenMetadataOf(other);
    for (const std::string& key : late) {
      const SegmentId id = ParseSegmentObjectKey(key)->segment;
      const auto record = kv->Get(SegmentKey(id));
      REQUIRE_OK(record);
      if (!*record) continue;
      ++removed;
      REQUIRE_OK(kv->Write({{SegmentKey(id), std::nullopt}, {RemovedSegmentKey(id), ""}}));
      for (const std::string& own : keys) {
        if (ParseSegmentObjectKey(own)->segment == id) REQUIRE_OK(objects.Remove(own));
      }
    }
    REQUIRE_OK(kv->CloseCleanly());
  }
  REQUIRE(removed > 0);
  REQUIRE_OK(MakeEmptyDirectory(*other.env, FilesDirectory("/cache")));
  REQUIRE_OK(other.Open());
  REQUIRE_OK(other.Ship());
  REQUIRE_OK(other.session->bucket()->RunBackground());
  for (const std::string& key : KeysOfSegments(objects)) CHECK(!late.contains(key));
  other.Close();
}

// The first writer claims ids in a commit that the bucket never gets, so the next one claims the
// same ids.
struct Collision {
  explicit Collision(uint64_t seed) : site(objects, 1), other(objects, 2), more(seed + 1000) {
    site.Make(kSmallSegments << seed % 3);
    REQUIRE_OK(site.Open());
    FileHistory history(seed);
    for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
    site.Close();
    const Files shipped = history.states.back();
    REQUIRE_OK(site.Open());
    for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == shipped);
    more.states = {shipped};
    for (uint64_t i = 0; i < seed % 4 + 1; ++i) REQUIRE_OK(more.Step(*other.fs));
    const auto before = SegmentsIn(objects);
    REQUIRE_OK(site.session->bucket()->RunBackground());
    REQUIRE(SegmentsIn(objects).size() > before.size());
    CHECK(!site.Ship().ok());
  }

  MemoryObjectStore objects;
  Site site;
  Site other;
  FileHistory more;  // of `other`
};

TEST_CASE("late segments: those with ids that the next writer uses do not win") {
  const int end = GENERATE(0, 1, 2, 3);
  for (uint64_t seed = 1; seed <= (kIsSanitized ? 3 : 12); ++seed) {
    INFO("seed " << seed << ", end " << end);
    Collision made(seed);
    Site& other = made.other;
    if (end == 0) {
      other.Close();
      other.Check();
    } else {
      other.Crash();
      other.env->PowerCut();
    }
    if (end >= 2) {  // without a session
      BucketOptions bucket = other.Bucket();
      const auto log = ReadLogEnd(made.objects);
      REQUIRE_OK(log);
      bucket.epoch = log->epoch;
      BucketSegmentStore segments(*other.env, made.objects, bucket);
      RepairOptions repair;
      repair.check.store = "/store";
      repair.check.segments = &segments;
      const auto repaired = RepairStore(*other.env, repair);
      REQUIRE_OK(repaired);
      REQUIRE_OK(segments.RunBackground());
    }
    if (end == 3) other.Check();
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == made.more.states.back());
    for (int i = 0; i < 8; ++i) REQUIRE_OK(made.more.Step(*other.fs));
    REQUIRE_OK(other.Ship());
    Site third(made.objects, 3);
    REQUIRE_OK(third.Restore());
    CHECK(FindingsOf(third) == std::set<std::string>{"index-open"});  // the first mount makes it
    REQUIRE_OK(third.Open());
    REQUIRE(third.ReadAll() == made.more.states.back());
    third.Close();
    third.Check();
    other.Crash();
  }
}

// An interrupted `bucket pull` leaves files beside the objects of all epochs.
TEST_CASE("late segments: a store with files of its objects keeps the objects") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(kSmallSegments);
  FileHistory history(5);
  for (int epoch = 0; epoch < 4; ++epoch) {
    REQUIRE_OK(site.Open());
    for (int i = 0; i < 4; ++i) REQUIRE_OK(history.Step(*site.fs));
    site.Close();
  }
  {
    BucketSegmentStore segments(*site.env, objects, site.Bucket());
    const auto listing = segments.List();
    REQUIRE_OK(listing);
    REQUIRE(listing->ids.size() > 3);
    for (const SegmentId id : listing->ids) {
      const auto object = segments.Open(id);
      REQUIRE_OK(object);
      Bytes bytes((*object)->Size().value());
      REQUIRE_OK(ReadExactly(**object, 0, bytes));
      REQUIRE_OK(CreateSegmentDirectory(*site.env, "/store", id));
      const auto file = site.env->OpenFile(SegmentPath("/store", id), {.mode = OpenMode::kCreate});
      REQUIRE_OK(file);
      REQUIRE_OK((*file)->Write(0, bytes));
      REQUIRE_OK((*file)->Sync());
      REQUIRE_OK(site.env->SyncDirectory(SegmentDirectory("/store", id)));
    }
  }
  const auto before = SegmentsIn(objects);
  const bool crash = GENERATE(false, true);
  REQUIRE_OK(site.Open());
  REQUIRE(site.ReadAll() == history.states.back());
  REQUIRE_OK(site.Ship());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(std::ranges::includes(SegmentsIn(objects), before));
  if (crash) {
    site.Crash();
    REQUIRE_OK(site.Open());
  }
  site.Close();
  site.Check();
  CHECK(std::ranges::includes(SegmentsIn(objects), before));
}

TEST_CASE("late segments: a segment whose record is lost is damage, and none of a fenced writer") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(kSmallSegments);
  FileHistory history(6);
  for (int epoch = 0; epoch < 3; ++epoch) {
    REQUIRE_OK(site.Open());
    for (int i = 0; i < 12; ++i) REQUIRE_OK(history.Step(*site.fs));
    site.Close();
  }
  BucketSegmentStore segments(*site.env, objects, site.Bucket());
  const auto listing = segments.List();
  REQUIRE_OK(listing);
  REQUIRE(listing->ids.size() > 2);
  {
    const auto kv = OpenMetadataOf(site);
    REQUIRE_OK(kv->Write({{SegmentKey(listing->ids[1]), std::nullopt}}));
    REQUIRE_OK(kv->CloseCleanly());
  }
  CHECK(FindingsOf(site).contains("segment-unknown"));
}

}  // namespace
}  // namespace siltfs::testing
