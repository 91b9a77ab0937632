// The power is cut in any call, and any part of the unsynced writes survives. When the log is
// opened again, it has every synced record, and Holds is right for all other records.
#include <algorithm>
#include <set>

#include "value_log_fixture.h"

namespace siltfs::testing {
namespace {

using Unsynced = CrashPolicy::Unsynced;

// The expected state of a log.
struct Life {
  std::vector<Record> synced;
  std::vector<Record> unsynced;       // appended since the last sync
  std::set<SegmentId> removed;        // durably removed
  std::set<SegmentId> maybe_removed;  // by a Remove that failed
  uint64_t next_number = 0;

  void NoteSynced() {
    synced.insert(synced.end(), unsynced.begin(), unsynced.end());
    unsynced.clear();
  }
  bool Gone(const Record& record) const { return removed.contains(record.location.segment); }
  bool MayBeGone(const Record& record) const {
    return Gone(record) || maybe_removed.contains(record.location.segment);
  }
  SegmentId HighestSegment() const {
    SegmentId highest = kNoSegment;
    for (const auto& record : synced) highest = std::max(highest, record.location.segment);
    for (const auto& record : unsynced) highest = std::max(highest, record.location.segment);
    return highest;
  }
};

void RemoveOldest(ValueLog& log, Life& life) {
  const auto segments = log.segments();
  if (segments.size() < 3) return;
  const SegmentId id = segments[0].id;
  // Sync first, as the owner does: records moved out of a removed segment must be durable.
  if (!log.Sync().ok()) return;
  life.NoteSynced();
  if (log.Remove(id).ok()) {
    life.removed.insert(id);
  } else {
    life.maybe_removed.insert(id);
  }
}

void Live(ValueLog& log, Life& life, uint64_t seed, int steps) {
  Random random(seed);
  for (int step = 0; step < steps; ++step) {
    const uint64_t number = life.next_number++;
    const size_t size = RandomSize(random, 1500);
    auto location = log.Append(NameOf(number), BytesOf(number, size));
    if (location.ok()) life.unsynced.push_back({number, size, *location});
    if (random.OneIn(7) && log.Sync().ok()) life.NoteSynced();
    if (random.OneIn(25) && log.SealOpenSegment().ok()) life.NoteSynced();
    if (random.OneIn(30)) RemoveOldest(log, life);
  }
}

// REQUIREs that synced records are present and that Holds is right for all others.
void RequireKept(const ValueLog& log, const Life& life) {
  for (const Record& record : life.synced) {
    if (life.Gone(record)) {
      REQUIRE_FALSE(log.Holds(record.name(), record.location));
      continue;
    }
    const bool held = log.Holds(record.name(), record.location);
    if (life.MayBeGone(record) && !held) continue;
    REQUIRE(held);
    RequireRead(log, record);
  }
  for (const Record& record : life.unsynced) {
    if (life.Gone(record)) continue;
    if (log.Holds(record.name(), record.location)) RequireRead(log, record);
  }
}

void RequireNewIds(ValueLog& log, const Life& life) {
  auto location = log.Append(NameOf(1U << 30), BytesOf(1, 10));
  REQUIRE_OK(location);
  REQUIRE(location->segment > life.HighestSegment());
}

// Runs with a power cut in the `cut`-th mutating call, and perhaps another one in a later opening.
// Returns false if the run ended earlier.
bool CutAt(uint64_t seed, uint64_t cut, const CrashPolicy& policy, bool twice) {
  auto env = NewDevice(seed);
  env->CutAtCall(cut);
  Life life;
  {
    auto log = ValueLog::Open(*env, SmallOptions());
    if (log.ok()) Live(**log, life, seed, 60);
  }
  const bool struck = !env->PowerIsOn();
  env->Reboot(policy);
  if (twice) {
    for (uint64_t again = 0; again < 2; ++again) {
      env->CutAtCall(1 + (cut + again * 5) % 13);
      auto log = ValueLog::Open(*env, SmallOptions());
      if (log.ok() && env->PowerIsOn()) RequireKept(**log, life);
      log = Status(StatusCode::kIoError, "gone");
      log.status().IgnoreError("the power was cut");
      env->Reboot({.unsynced = policy.unsynced, .seed = policy.seed + again});
    }
  }
  // Checks a read-only opening first.
  ValueLogOptions reading = SmallOptions();
  reading.read_only = true;
  RequireKept(*OpenLog(*env, reading), life);
  {
    auto log = OpenLog(*env, SmallOptions());
    RequireKept(*log, life);
    for (const auto& segment : log->segments()) REQUIRE_FALSE(segment.open);
    RequireNewIds(*log, life);
    Live(*log, life, seed + 99, 20);
    REQUIRE_OK(log->Sync());
    life.NoteSynced();
  }
  return struck;
}

}  // namespace

TEST_CASE("a power cut in any call loses no synced record") {
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix,
                                 Unsynced::kSubset, Unsynced::kGarble);
  const bool twice = GENERATE(false, true);
  const bool any_order = GENERATE(false, true);
  const uint64_t seed = GENERATE(1, 2);
  uint64_t cut = 1;
  while (true) {
    INFO("seed " << seed << ", power cut in call " << cut << ", policy "
                 << static_cast<int>(unsynced) << ", twice " << twice << ", names in any order "
                 << any_order);
    const CrashPolicy policy{
        .unsynced = unsynced, .seed = seed * 1000 + cut, .names_in_any_order = any_order};
    if (!CutAt(seed, cut, policy, twice)) break;
    ++cut;
  }
  CHECK(cut > 50);
}

// The first crash loses records of a segment, and the next opening seals the segment with the
// remaining records. Then the power fails again, before a call of ForgetRecovered. Although the
// segment is sealed now, the log must still know which of its records are lost.
TEST_CASE("records lost in a crash are known until ForgetRecovered") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  options.segment_bytes = kMaxSegmentTargetSize;
  Record kept;
  Record lost;
  {
    auto log = OpenLog(*env, options);
    kept = AppendRecord(*log, 1, 600);
    REQUIRE_OK(log->Sync());
    lost = AppendRecord(*log, 2, 600);
    AppendRecord(*log, 3, 600);  // makes the log write the block of `lost`
  }
  env->PowerCut();
  for (int opening = 0; opening < 3; ++opening) {
    auto log = OpenLog(*env, options);
    CHECK(log->Holds(kept.name(), kept.location));
    RequireRead(*log, kept);
    CHECK_FALSE(log->Holds(lost.name(), lost.location));
    CHECK_FALSE(log->Holds(lost.name(), kept.location));
    auto place = kept.location;
    place.block_offset += 1;
    CHECK_FALSE(log->Holds(kept.name(), place));
    // Makes the log write the manifest again.
    AppendRecord(*log, 4, 10);
    REQUIRE_OK(log->Sync());
    log.reset();
    env->PowerCut();
  }
  auto log = OpenLog(*env, options);
  log->ForgetRecovered();
  CHECK(log->Holds(lost.name(), lost.location));  // tests only whether the segment exists
  RequireRead(*log, kept);
  REQUIRE_CODE(log->Read(lost.name(), lost.location), kCorruption);
}

TEST_CASE("a killed process loses no synced record, nor does a power cut after it") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    auto env = NewDevice(seed);
    Life life;
    for (uint64_t round = 0; round < 4; ++round) {
      auto log = OpenLog(*env, SmallOptions());
      RequireKept(*log, life);
      // Records found while opening are durable, because opening seals their segments.
      std::erase_if(life.unsynced,
                    [&](const Record& r) { return !log->Holds(r.name(), r.location); });
      life.NoteSynced();
      if (round % 2 == 1) {
        log.reset();
        env->PowerCut();
        log = OpenLog(*env, SmallOptions());
        RequireKept(*log, life);
      }
      Live(*log, life, seed * 10 + round, 40);
    }
  }
}

TEST_CASE("a torn tail is no damage") {
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    auto env = NewDevice(seed);
    {
      auto log = OpenLog(*env, SmallOptions());
      AppendRecord(*log, 1000, 600);
      REQUIRE_OK(log->Sync());
      for (uint64_t number = 0; number < 4; ++number) AppendRecord(*log, number, 600);
    }
    env->PowerCut({.unsynced = unsynced, .seed = seed});
    ValueLogOptions reading = SmallOptions();
    reading.read_only = true;
    CHECK(OpenLog(*env, reading)->stats().damaged == 0);
    CHECK(OpenLog(*env, SmallOptions())->stats().damaged == 0);
  }
}

TEST_CASE("a lost write hides no blocks behind it") {
  bool seen = false;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    auto env = NewDevice(seed);
    ValueLogOptions options = SmallOptions();
    options.segment_bytes = kMaxSegmentTargetSize;
    std::vector<Record> records;
    {
      auto log = OpenLog(*env, options);
      AppendRecord(*log, 1000, 600);
      REQUIRE_OK(log->Sync());
      for (uint64_t number = 0; number < 12; ++number) {
        records.push_back(AppendRecord(*log, number, 600));
      }
    }
    env->PowerCut({.unsynced = Unsynced::kSubset, .seed = seed});
    auto log = OpenLog(*env, options);
    bool gap = false;
    for (const Record& record : records) {
      if (!log->Holds(record.name(), record.location)) {
        REQUIRE_CODE(log->Read(record.name(), record.location), kCorruption);
        gap = true;
        continue;
      }
      RequireRead(*log, record);
      if (gap) {
        seen = true;
        CHECK(log->stats().damaged > 0);
      }
    }
  }
  CHECK(seen);
}

TEST_CASE("segment ids are never reused, not even those of segments lost in a crash") {
  auto env = NewDevice();
  std::set<SegmentId> used;
  for (uint64_t life = 0; life < 5; ++life) {
    auto log = OpenLog(*env, SmallOptions());
    CHECK(log->segments().empty());
    for (uint64_t number = 0; number < 3; ++number) {
      const Record record = AppendRecord(*log, number, 600);
      if (number == 0) CHECK(used.insert(record.location.segment).second);
    }
    log.reset();
    env->PowerCut();
  }
  // The ids are not reused, even if more segments are begun than one reservation covers.
  auto log = OpenLog(*env, SmallOptions());
  for (uint64_t number = 0; number < 100; ++number) {
    CHECK(used.insert(AppendRecord(*log, number, 5000).location.segment).second);
  }
  log.reset();
  env->PowerCut();
  log = OpenLog(*env, SmallOptions());
  CHECK(used.insert(AppendRecord(*log, 1, 10).location.segment).second);
}

TEST_CASE("a removed segment does not come back after a power cut") {
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset);
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  std::vector<Record> records;
  while (log->segments().size() < 4) records.push_back(AppendRecord(*log, records.size(), 500));
  REQUIRE_OK(log->Sync());
  REQUIRE_OK(log->Remove(2));
  log.reset();
  env->PowerCut({.unsynced = unsynced, .seed = 5});
  log = OpenLog(*env, SmallOptions());
  for (const Record& record : records) {
    if (record.location.segment == 2) {
      CHECK_FALSE(log->Holds(record.name(), record.location));
      REQUIRE_CODE(log->Read(record.name(), record.location), kNotFound);
    } else {
      RequireRead(*log, record);
    }
  }
}

TEST_CASE("a removal of unknown durability is durable after the next opening") {
  auto env = NewDevice();
  Record record;
  {
    auto log = OpenLog(*env, SmallOptions());
    record = AppendRecord(*log, 1, 300);
    REQUIRE_OK(log->SealOpenSegment());
    env->FailCall({.calls = SimCall::kSyncDirectory, .path_part = "segments"});
    REQUIRE_CODE(log->Remove(record.location.segment), kIoError);
    REQUIRE_CODE(log->Read(record.name(), record.location), kNotFound);
  }
  { CHECK(OpenLog(*env, SmallOptions())->segments().empty()); }
  env->PowerCut();
  CHECK(OpenLog(*env, SmallOptions())->segments().empty());
}

TEST_CASE("files of an interrupted sealing are removed") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  AppendRecord(*log, 1, 300);
  REQUIRE_OK(log->SealOpenSegment());
  const std::string temporary = TemporarySegmentPath(kLogDirectory, 1);
  PutFile(*env, temporary, "half of it");
  log = OpenLog(*env, SmallOptions());
  REQUIRE_CODE(env->GetFileInfo(temporary), kNotFound);
}

TEST_CASE("a segment without a whole block after a crash is removed") {
  auto env = NewDevice();
  OpenLog(*env, SmallOptions())->segments();
  for (const size_t size : {0, 10, 64, 100, 5000}) {
    INFO("size " << size);
    SegmentId id = kNoSegment;
    {
      auto log = OpenLog(*env, SmallOptions());
      id = AppendRecord(*log, 1, 100).location.segment;
    }
    const std::string path = SegmentPath(kLogDirectory, id);
    std::string bytes = FileBytes(*env, path);
    bytes.resize(size);
    PutFile(*env, path, bytes);
    auto log = OpenLog(*env, SmallOptions());
    CHECK(log->segments().empty());
    CHECK(log->stats().damaged == 0);
    REQUIRE_CODE(env->GetFileInfo(path), kNotFound);
  }
}

}  // namespace siltfs::testing
