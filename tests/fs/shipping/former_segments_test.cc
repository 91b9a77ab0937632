// Objects of segments that arrive when the removal of their segments is complete.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/open/store_metadata.h"
#include "fs/records/former_segments.h"
#include "fs/records/schema.h"
#include "fs/repair/repair_store.h"
#include "fs/segments/segment_tables.h"
#include "fs/shipping/bucket_log.h"
#include "store/bucket/bucket_names.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/fs/shipping/site.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kSmallSegments = 16u << 10;

// Adds ids, and returns what the store then reads.
FormerSegments AddTo(KvStore& kv, const std::set<SegmentId>& ids) {
  const auto mutations = AddFormerSegments(kv, ids);
  REQUIRE_OK(mutations);
  REQUIRE_OK(kv.Write(*mutations));
  auto former = ReadFormerSegments(*kv.Snapshot());
  REQUIRE_OK(former);
  return std::move(former).value();
}

TEST_CASE("former segments: ids that were added are contained, and no others") {
  MemoryDisk disk;
  const auto opened = OpenMemoryKvStore(disk);
  KvStore& kv = *opened;
  const std::set<SegmentId> first = {0, 9, 4095, 4096, 1'000'000, UINT32_MAX};
  AddTo(kv, first);
  std::set<SegmentId> all = {1, 4097, 70'000};
  const FormerSegments former = AddTo(kv, all);
  all.insert(first.begin(), first.end());
  for (SegmentId id = 0; id < 80'000; ++id) REQUIRE(former.Contains(id) == all.contains(id));
  for (const SegmentId id : all) CHECK(former.Contains(id));
  CHECK_FALSE(former.Contains(UINT32_MAX - 1));
  CHECK(kv.Get(FormerSegmentsKey(1)).value() == std::string("\3"));
  CHECK(kv.Get(FormerSegmentsKey(0))->value().size() == 512);
}

TEST_CASE("former segments: a malformed record is passed over, and replaced") {
  MemoryDisk disk;
  const auto opened = OpenMemoryKvStore(disk);
  KvStore& kv = *opened;
  REQUIRE_OK(kv.Write({{FormerSegmentsKey(0), std::string(513, 'x')}, {"F", "x"}}));
  const auto former = ReadFormerSegments(*kv.Snapshot());
  REQUIRE_OK(former);
  CHECK_FALSE(former->Contains(3));
  CHECK(AddTo(kv, {3}).Contains(3));
  CHECK(kv.Get(FormerSegmentsKey(0)).value() == std::string("\x08"));
}

TEST_CASE("former segments: a crafted store has a bound") {
  FormerSegments former;
  for (uint32_t number = 0; number < FormerSegments::kMostRecords + 2; ++number)
    REQUIRE(former.Add(FormerSegmentsKey(number), "\1"));
  const SegmentId end = FormerSegments::kMostRecords * FormerSegments::kIdsPerRecord;
  CHECK(former.Contains(end - FormerSegments::kIdsPerRecord));
  CHECK_FALSE(former.Contains(end));
}

// A store whose bucket gets objects again after their segments were removed.
struct LateObjects {
  explicit LateObjects(int steps = 24, bool collects = true) : site(objects, 1) {
    site.Make(kSmallSegments);
    REQUIRE_OK(site.Open());
    std::map<std::string, std::string> seen;  // the contents of objects
    for (int i = 0; i < steps; ++i) {
      REQUIRE_OK(history.Step(*site.fs));
      if (collects && i % 6 == 5) REQUIRE_OK(site.fs->maintenance().CollectGarbage(false));
      REQUIRE_OK(site.Ship());
      REQUIRE_OK(site.session->bucket()->RunBackground());
      for (const std::string& key : objects.Keys()) {
        if (key.starts_with("segments/")) seen[key] = objects.Content(key).value();
      }
    }
    const std::vector<std::string> keys = objects.Keys();
    for (const auto& [key, content] : seen) {
      if (std::ranges::find(keys, key) == keys.end()) late[key] = content;
    }
  }

  void Arrive() {
    for (const auto& [key, content] : late) objects.SetContent(key, content);
  }

  std::set<SegmentId> Ids() const {
    std::set<SegmentId> ids;
    for (const auto& [key, content] : late) ids.insert(ParseSegmentObjectKey(key)->segment);
    return ids;
  }

  void Repair(RepairMode mode) {
    BucketOptions bucket = site.Bucket();
    const auto log = ReadLogEnd(objects);
    REQUIRE_OK(log);
    bucket.epoch = log->epoch;
    BucketSegmentStore segments(*site.env, objects, bucket);
    RepairOptions repair;
    repair.mode = mode;
    repair.check.store = "/store";
    repair.check.segments = &segments;
    REQUIRE_OK(RepairStore(*site.env, repair));
  }

  // Without the layer of the bucket.
  std::unique_ptr<KvStore> Metadata(KvStoreOptions::Mode mode) {
    const auto state = ReadSuperblock(*site.env, "/store");
    REQUIRE_OK(state);
    auto kv = OpenExistingMetadata(*site.env, state->superblock, "/store", mode);
    REQUIRE_OK(kv);
    return std::move(kv).value();
  }

  // The late objects whose segments have a record.
  size_t Recorded() {
    const auto kv = Metadata(KvStoreOptions::Mode::kReadOnly);
    size_t recorded = 0;
    for (const SegmentId id : Ids()) {
      const auto record = kv->Get(SegmentKey(id));
      REQUIRE_OK(record);
      recorded += record->has_value() ? 1 : 0;
    }
    return recorded;
  }

  MemoryObjectStore objects;
  Site site;
  FileHistory history{3};
  std::map<std::string, std::string> late;
};

TEST_CASE("former segments: objects that arrive after the removal are no lost records") {
  LateObjects made;
  Site& site = made.site;
  REQUIRE(made.late.size() > 3);
  REQUIRE(made.Recorded() == 0);
  const bool in_later_epoch = GENERATE(false, true);
  if (in_later_epoch) {
    site.Close();
    REQUIRE_OK(site.Open());
  }
  const bool crash = GENERATE(false, true);
  if (crash) {
    site.Crash();
    site.env->PowerCut();
  } else {
    site.Close();
  }
  made.Arrive();
  if (!crash) site.Check();
  made.Repair(RepairMode::kSafe);
  CHECK(made.Recorded() == 0);
  site.Check();
  REQUIRE_OK(site.Open());
  REQUIRE(site.ReadAll() == made.history.states.back());
  REQUIRE_OK(site.Ship());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  for (const std::string& key : made.objects.Keys()) CHECK_FALSE(made.late.contains(key));
  site.Close();
  site.Check();
}

// More segments than the mask in the record of epochs covers.
constexpr int kManySteps = 300;

TEST_CASE("former segments: a repair adds those whose records it removes") {
  LateObjects made(kManySteps, /*collects=*/false);
  Site& site = made.site;
  site.Close();
  std::string lost;
  for (const std::string& key : made.objects.Keys()) {
    if (lost.empty() && key.starts_with("segments/")) lost = key;
  }
  made.late = {{lost, made.objects.Content(lost).value()}};
  REQUIRE_OK(made.objects.Remove(lost));
  REQUIRE_OK(MakeEmptyDirectory(*site.env, FilesDirectory("/cache")));
  REQUIRE(made.Recorded() == 1);
  made.Repair(RepairMode::kAll);
  REQUIRE(made.Recorded() == 0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    REQUIRE_OK(site.Open());
    REQUIRE_OK(site.Ship());
    site.Close();
  }
  made.Arrive();
  site.Check();
}

// A segment is begun with a record, and a crash loses its file's content.
TEST_CASE("former segments: the recovery of a repair adds those whose records it removes") {
  LateObjects made;
  Site& site = made.site;
  site.Crash();
  SegmentId empty = 0;
  {
    const auto kv = made.Metadata(KvStoreOptions::Mode::kOpen);
    const auto records = ReadSegmentRecords(*kv->Snapshot());
    REQUIRE_OK(records);
    empty = records->back().first + 1;
    REQUIRE_OK(kv->Write({{SegmentKey(empty), SegmentRecord().Encode()}}));
    REQUIRE_OK(kv->CloseCleanly());
  }
  REQUIRE_OK(CreateSegmentDirectory(*site.env, "/store", empty));
  REQUIRE_OK(site.env->OpenFile(SegmentPath("/store", empty), {.mode = OpenMode::kCreate}));
  made.Repair(RepairMode::kSafe);
  const auto kv = made.Metadata(KvStoreOptions::Mode::kReadOnly);
  CHECK_FALSE(kv->Get(SegmentKey(empty))->has_value());
  const auto former = ReadFormerSegments(*kv->Snapshot());
  REQUIRE_OK(former);
  CHECK(former->Contains(empty));
}

TEST_CASE("former segments: a rebuild of metadata keeps them") {
  LateObjects made(kManySteps);
  Site& site = made.site;
  site.Close();
  {
    const auto kv = made.Metadata(KvStoreOptions::Mode::kOpen);
    REQUIRE_OK(kv->Write({{FormerSegmentsKey(9), ""}}));
    REQUIRE_OK(kv->CloseCleanly());
  }
  made.Repair(RepairMode::kAll);
  REQUIRE_OK(site.Open());
  REQUIRE_OK(site.Ship());
  site.Close();
  made.Arrive();
  REQUIRE(made.Ids().size() > 70);
  REQUIRE(made.Recorded() == 0);
  site.Check();
}

}  // namespace
}  // namespace siltfs::testing
