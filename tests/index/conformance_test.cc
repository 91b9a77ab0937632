// The guarantees of every engine, checked against an oracle in memory.
#include <algorithm>
#include <map>
#include <set>

#include "engines.h"
#include "history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

struct Fixture {
  explicit Fixture(const Engine& tested) : engine(tested) {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<ChunkIndex> Open(bool read_only = false) {
    auto index = engine.open(env, kDirectory, read_only);
    REQUIRE_OK(index);
    return std::move(*index);
  }
  SimEnv env;
  const Engine& engine;
};

// Puts 20 entries with each sequence from 1 to `last`. Returns the last location of each name.
std::map<ChunkName, Location> PutRandomEntries(ChunkIndex& index, uint64_t seed, uint64_t last) {
  std::map<ChunkName, Location> put;
  Random random(seed);
  for (uint64_t sequence = 1; sequence <= last; ++sequence) {
    std::vector<IndexEntry> entries;
    for (int i = 0; i < 20; ++i) {
      entries.push_back({NameOf(random.Below(900)), RandomLocation(random)});
      put[entries.back().name] = entries.back().location;
    }
    REQUIRE_OK(index.Put(entries, sequence));
  }
  return put;
}

}  // namespace

TEST_CASE("a new index is empty") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == 0);
  auto got = index->Get(NameOf(1));
  REQUIRE_OK(got);
  CHECK_FALSE(got->has_value());
  CheckForEach(*index, {});
  REQUIRE_OK(index->Close());
}

TEST_CASE("an index answers like a map, through flushes and reopenings") {
  const size_t engine_number = GENERATE(range(size_t{0}, AllEngines().size()));
  const uint64_t seed = GENERATE(range(1, 1 + static_cast<int>(std::max<uint64_t>(2, Share(5)))));
  const Engine& engine = AllEngines()[engine_number];
  INFO(engine.name << ", seed " << seed);
  Fixture fixture(engine);
  History history;
  Random random(seed);
  for (int life = 0; life < 4; ++life) {
    auto index = fixture.Open();
    CHECK(index->durable_sequence() == history.last_sequence());
    CheckNow(*index, history);
    for (int part = 0; part < 3; ++part) {
      const auto run =
          RunWorkload(*index, history,
                      {.seed = random.Next(), .steps = 150, .names = 20 + 200 * random.Below(3)});
      REQUIRE(run.failures == 0);
      CheckNow(*index, history);
      CheckForEach(*index, history);
    }
    REQUIRE_OK(index->Close());
  }
}

TEST_CASE("a name put twice in one call has its last location") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  const IndexEntry entries[] = {
      {NameOf(1), {1, 1, 1}}, {NameOf(2), {2, 2, 2}}, {NameOf(1), {3, 3, 3}}};
  REQUIRE_OK(index->Put(entries, 1));
  const ChunkName names[] = {NameOf(1), NameOf(2), NameOf(1)};
  Answer answers[3];
  REQUIRE_OK(index->Get(names, answers));
  CHECK(answers[0] == Location{3, 3, 3});
  CHECK(answers[1] == Location{2, 2, 2});
  CHECK(answers[2] == Location{3, 3, 3});
}

TEST_CASE("Flush makes all sequences but the last one durable, and Close makes all durable") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  const IndexEntry entry{NameOf(1), {1, 2, 3}};
  REQUIRE_OK(index->Put({&entry, 1}, 7));
  CHECK(index->durable_sequence() == 0);
  REQUIRE_OK(index->Flush());
  CHECK(index->durable_sequence() == 6);
  REQUIRE_OK(index->Put({}, 8));  // completes sequence 7
  REQUIRE_OK(index->Flush());
  CHECK(index->durable_sequence() == 7);
  REQUIRE_OK(index->Close());
  CHECK(fixture.Open()->durable_sequence() == 8);
}

TEST_CASE("flushed puts and deletions survive a power cut") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  const IndexEntry entries[] = {{NameOf(1), {1, 1, 1}}, {NameOf(2), {2, 2, 2}}};
  REQUIRE_OK(index->Put(entries, 1));
  REQUIRE_OK(index->Flush());
  REQUIRE_OK(index->Delete(NameOf(1)));
  REQUIRE_OK(index->Flush());
  index.reset();  // its threads must not change the files of the next index
  fixture.env.PowerCut();
  index = fixture.Open();
  auto first = index->Get(NameOf(1));
  REQUIRE_OK(first);
  CHECK_FALSE(first->has_value());
  auto second = index->Get(NameOf(2));
  REQUIRE_OK(second);
  CHECK(*second == Location{2, 2, 2});
}

TEST_CASE("unsynced writes of a killed process are not reported durable too early") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  History history;
  {
    auto index = fixture.Open();
    RunWorkload(*index, history, {.seed = 3, .steps = 300, .names = 400, .flush = false});
  }  // the process is killed
  auto index = fixture.Open();
  const uint64_t durable = index->durable_sequence();
  CheckAfterCrash(*index, history);
  index.reset();  // its threads must not change the files of the next index
  fixture.env.PowerCut();
  index = fixture.Open();
  REQUIRE(index->durable_sequence() >= durable);
  CheckAfterCrash(*index, history);
}

TEST_CASE("a read-only index answers and writes nothing") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  History history;
  const bool crashed = GENERATE(false, true);
  {
    auto index = fixture.Open();
    RunWorkload(*index, history, {.seed = 4, .steps = 200});
    if (!crashed) REQUIRE_OK(index->Close());
  }
  if (crashed) fixture.env.PowerCut({CrashPolicy::Unsynced::kSubset, 5});
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  {
    auto index = fixture.Open(true);
    CheckAfterCrash(*index, history);
    CheckForEach(*index, history);
    const IndexEntry entry{NameOf(1), {1, 1, 1}};
    REQUIRE_CODE(index->Put({&entry, 1}, history.last_sequence() + 1), kReadOnly);
    REQUIRE_CODE(index->Delete(NameOf(1)), kReadOnly);
    REQUIRE_OK(index->Flush());
    REQUIRE_OK(index->Close());
  }
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
}

TEST_CASE("an empty directory opens read-only without a write") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  auto index = fixture.Open(true);
  CheckNow(*index, {});
  CheckForEach(*index, {});
  REQUIRE_OK(index->Close());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
}

TEST_CASE("opening an index in a missing directory fails with kNotFound") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  SimEnv env;
  REQUIRE_CODE(engine.open(env, "/nowhere", false), kNotFound);
  REQUIRE_CODE(engine.open(env, "/nowhere", true), kNotFound);
}

TEST_CASE("ForEach stops at the first failure of its visitor, which may use the index") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  History history;
  RunWorkload(*index, history, {.seed = 5});
  std::map<uint64_t, ChunkName> names;  // by place in the order
  for (uint64_t i = 0; i < 1000; ++i) names[index->OrderOf(NameOf(i))] = NameOf(i);
  int visits = 0;
  uint64_t sequence = history.last_sequence();
  REQUIRE_CODE(index->ForEach([&](const OrderedEntry& entry) -> Status {
    const ChunkName& name = names.at(entry.order);
    SILTFS_ASSIGN_OR_RETURN(const auto answer, index->Get(name));
    if (answer != entry.location) return {StatusCode::kCorruption, "another answer"};
    const IndexEntry again{name, entry.location};
    SILTFS_RETURN_IF_ERROR(index->Put({&again, 1}, ++sequence));
    if (++visits == 3) return {StatusCode::kInterrupted, "enough"};
    return Status::Ok();
  }),
               kInterrupted);
  CHECK(visits == 3);
  REQUIRE_OK(index->Close());
  REQUIRE_CODE(index->ForEach([](const OrderedEntry&) { return Status::Ok(); }), kInvalidArgument);
}

TEST_CASE("a name's place in the order is the same after reopening") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  std::vector<uint64_t> orders;
  {
    auto index = fixture.Open();
    const IndexEntry entry{NameOf(1), {1, 1, 1}};
    REQUIRE_OK(index->Put({&entry, 1}, 1));
    for (uint64_t i = 0; i < 50; ++i) orders.push_back(index->OrderOf(NameOf(i)));
    REQUIRE_OK(index->Close());
  }
  auto index = fixture.Open();
  for (uint64_t i = 0; i < 50; ++i) CHECK(index->OrderOf(NameOf(i)) == orders[i]);
  CHECK(std::set<uint64_t>(orders.begin(), orders.end()).size() == 50);
}

TEST_CASE("entries of gone segments may disappear, and no others do") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  index->SetGone([](SegmentId segment) { return segment % 3 == 0; });
  const auto put = PutRandomEntries(*index, 6, 60);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      REQUIRE_OK(index->Close());
      index = fixture.Open();
    }
    for (const auto& [name, location] : put) {
      const auto answer = index->Get(name);
      REQUIRE_OK(answer);
      if (*answer || location.segment % 3 != 0) REQUIRE(*answer == location);
    }
    REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  }
}

TEST_CASE("DropGone drops all entries of gone segments") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  const auto put = PutRandomEntries(*index, 7, 30);
  index->SetGone([](SegmentId segment) { return segment % 3 == 0; });
  REQUIRE_OK(index->DropGone());
  for (const bool reopened : {false, true}) {
    if (reopened) {
      REQUIRE_OK(index->Close());
      index = fixture.Open();
    }
    for (const auto& [name, location] : put) {
      const auto answer = index->Get(name);
      REQUIRE_OK(answer);
      if (location.segment % 3 == 0) {
        REQUIRE_FALSE(*answer);
      } else {
        REQUIRE(*answer == location);
      }
    }
    REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  }
}

TEST_CASE("statistics count lookups, bytes and entries") {
  const Engine& engine = GENERATE(from_range(AllEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  auto index = fixture.Open();
  CHECK(index->stats().ReadAmplification() == 0);
  CHECK(index->stats().WriteAmplification() == 0);
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < 100; ++i) entries.push_back({NameOf(i), {1, 2, 3}});
  REQUIRE_OK(index->Put(entries, 1));
  REQUIRE_OK(index->Delete(NameOf(7)));
  REQUIRE_OK(index->Flush());
  CheckNow(*index, {});
  const IndexStats stats = index->stats();
  CHECK_FALSE(stats.engine.empty());
  CHECK(stats.entries >= 99);
  CHECK(stats.entries <= 101);
  CHECK(stats.lookups == 20);
  CHECK(stats.entry_bytes_put == 101 * 32);
  CHECK(stats.flash_bytes_written >= 99 * 32);
  CHECK(stats.flash_bytes >= 99 * 32);
  CHECK(stats.memory_bytes > 0);
  CHECK(stats.damaged_pages == 0);
  CHECK_FALSE(stats.stores.empty());
}

}  // namespace siltfs::testing
