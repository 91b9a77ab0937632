// The table of index engines: each row describes the engine that it opens.
#include <set>

#include "history.h"
#include "index/engines.h"
#include "index/open_index.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

// Puts, flushes and reads back some entries with these parameters, in a new index.
void UseIndex(const IndexEngineRow& row, const EngineParameters& parameters) {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  const auto open = [&](const EngineParameters& with) {
    auto index = OpenIndex(
        env,
        {.engine = row.number, .directory = kDirectory, .parameters = with, .background = false});
    REQUIRE_OK(index);
    return std::move(*index);
  };
  History history;
  {
    const auto index = open(parameters);
    REQUIRE(RunWorkload(*index, history, {.seed = 1, .steps = 60}).failures == 0);
    CheckNow(*index, history);
    REQUIRE_OK(index->Close());
  }
  // An existing index keeps its own parameters.
  CheckNow(*open(parameters), history);
  CheckNow(*open({}), history);
}

// An Env with a clock that an hour passes between two reads of; it counts the reads.
class FastClock : public SimEnv {
 public:
  int64_t MonotonicNanoseconds() override {
    ++reads;
    AdvanceClock(int64_t{3600} * 1'000'000'000);
    return SimEnv::MonotonicNanoseconds();
  }
  uint64_t reads = 0;
};

std::vector<IndexEntry> RandomEntries(uint64_t count) {
  Random random(1);
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < count; ++i) entries.push_back({NameOf(i), RandomLocation(random)});
  return entries;
}

}  // namespace

TEST_CASE("A synchronous SILT index has each entry durable when Put returns") {
  const bool synchronous = GENERATE(true, false);
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  const auto open = [&] {
    auto index =
        OpenIndex(env, {.directory = kDirectory, .synchronous = synchronous, .background = false});
    REQUIRE_OK(index);
    return std::move(*index);
  };
  const std::vector<IndexEntry> entries = RandomEntries(20);
  auto index = open();
  REQUIRE_OK(index->Put(entries, 1));
  env.CutAtCall(1);
  index.reset();
  env.Reboot();
  index = open();
  for (const IndexEntry& entry : entries) {
    const auto got = index->Get(entry.name);
    REQUIRE_OK(got);
    REQUIRE(got->has_value() == synchronous);
  }
}

TEST_CASE("SILT writes its HashStores and SortedStores at the given rate") {
  const auto reads_at_rate = [](uint64_t rate) {
    FastClock env;
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    const auto index = OpenIndex(env, {.directory = kDirectory,
                                       .parameters = {{"partition_bits", 0}, {"bucket_bits", 4}},
                                       .background_bytes_per_second = rate,
                                       .background = false});
    REQUIRE_OK(index);
    REQUIRE_OK((*index)->Put(RandomEntries(1000), 1));
    CHECK((*index)->stats().merges > 0);
    return env.reads;
  };
  CHECK(reads_at_rate(0) == 0);
  CHECK(reads_at_rate(1'000'000) > 0);
}

TEST_CASE("Each index engine has a number and a name of its own, and is found by both") {
  std::set<IndexEngine> numbers;
  std::set<std::string_view> names;
  for (const IndexEngineRow* row : IndexEngines()) {
    INFO(row->name);
    CHECK(numbers.insert(row->number).second);
    CHECK(names.insert(row->name).second);
    CHECK(IsEngineWord(row->name, kEngineNameSize));
    CHECK(FindIndexEngine(row->number) == row);
    const auto found = FindIndexEngine(row->name);
    REQUIRE_OK(found);
    CHECK(*found == row);
  }
  CHECK(FindIndexEngine(static_cast<IndexEngine>(200)) == nullptr);
  const auto unknown = FindIndexEngine("oak");
  REQUIRE_CODE(unknown, kInvalidArgument);
  CHECK(unknown.status().cause() ==
        "there is no engine \"oak\" (there are: silt, map, buffer_hash, slice_hash, bloom_store, "
        "skimpy_stash)");
}

TEST_CASE("The numbers of index engines on disk never change") {
  const auto name_of = [](uint8_t number) {
    const IndexEngineRow* const row = FindIndexEngine(IndexEngine{number});
    REQUIRE(row != nullptr);
    return row->name;
  };
  CHECK(name_of(0) == "map");
  CHECK(name_of(1) == "silt");
}

TEST_CASE("An index names the engine of its row, and answers") {
  for (const IndexEngineRow* row : IndexEngines()) {
    INFO(row->name);
    SimEnv env;
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    const auto index = OpenIndex(env, {.engine = row->number, .directory = kDirectory});
    REQUIRE_OK(index);
    CHECK((*index)->stats().engine == row->name);
    UseIndex(*row, {});
  }
}

TEST_CASE("An index opens with the least, the default and the greatest value of each parameter") {
  for (const IndexEngineRow* row : IndexEngines()) {
    std::set<std::string_view> names;
    for (const EngineParameterSpec& spec : row->parameters) {
      INFO(row->name << " " << spec.name);
      CHECK(names.insert(spec.name).second);
      CHECK(IsEngineWord(spec.name, kEngineParameterNameSize));
      CHECK(spec.least <= spec.value);
      CHECK(spec.value <= spec.most);
      for (const uint64_t value : {spec.least, spec.value, spec.most}) {
        const EngineParameters parameters = {{std::string(spec.name), value}};
        REQUIRE_OK(CheckIndexChoice(row->number, parameters));
        UseIndex(*row, parameters);
      }
    }
    CHECK(row->parameters.size() <= kMostEngineParameters);
  }
}

TEST_CASE(
    "A parameter that an engine does not know is refused by mkfs, and when an index is opened") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  for (const IndexEngineRow* row : IndexEngines()) {
    INFO(row->name);
    std::vector<EngineParameters> wrong = {{{"height", 1}}};
    for (const EngineParameterSpec& spec : row->parameters) {
      const std::string name(spec.name);
      wrong.push_back({{name, spec.most + 1}});
      if (spec.least > 0) wrong.push_back({{name, spec.least - 1}});
      wrong.push_back({{name, spec.value}, {name, spec.value}});
    }
    for (const EngineParameters& parameters : wrong) {
      REQUIRE_CODE(CheckIndexChoice(row->number, parameters), kInvalidArgument);
      const auto opened = OpenIndex(
          env, {.engine = row->number, .directory = kDirectory, .parameters = parameters});
      REQUIRE_CODE(opened, kNeedsNewer);
      CHECK(opened.status().path() == kDirectory);
    }
  }
  CHECK(env.ListDirectory(kDirectory)->empty());
  REQUIRE_CODE(CheckIndexChoice(static_cast<IndexEngine>(200), {}), kInvalidArgument);
}

TEST_CASE("An engine's plan grows with the number of entries") {
  for (const IndexEngineRow* row : IndexEngines()) {
    INFO(row->name);
    const auto small = row->plan({.entries = 100'000});
    const auto large = row->plan({.entries = 100'000'000});
    REQUIRE_OK(small);
    REQUIRE_OK(large);
    CHECK(small->memory_bytes > 0);
    CHECK(large->memory_bytes > small->memory_bytes);
    if (!large->costs) continue;
    CHECK(large->costs->write_amplification >= 1);
    CHECK(large->costs->reads_per_hit > 0);
  }
}

}  // namespace siltfs::testing
