// What the engines with page files share (flash_index.h): a full disk, memory, damage.
#include "index/flash/flash_index.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "history.h"
#include "index/bloom_store/bloom_store_engine.h"
#include "index/buffer_hash/buffer_hash_engine.h"
#include "index/flash/flash_state.h"
#include "index/flash/put_log.h"
#include "index/flash/state_map.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "index/slice_hash/slice_hash_engine.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

struct TestEngine {
  const char* name;
  std::unique_ptr<FlashEngine> (*make)(const EngineParameters&);
  EngineParameters parameters;  // partitions of some 1,000 entries
};

const std::vector<TestEngine>& TestEngines() {
  static const std::vector<TestEngine> engines = {
      {"buffer_hash", MakeBufferHashEngine, {{"table_bits", 5}, {"incarnations", 8}}},
      {"slice_hash", MakeSliceHashEngine, {{"table_bits", 3}, {"incarnations", 16}}},
      {"bloom_store", MakeBloomStoreEngine, {{"chain_length", 6}, {"buffered_filters", 2}}},
      {"skimpy_stash", MakeSkimpyStashEngine, {{"capacity_bits", 10}}}};
  return engines;
}

struct Fixture {
  explicit Fixture(const TestEngine& tested, unsigned partition_bits = 0,
                   uint32_t least_log_pages = 64)
      : engine(tested) {
    options.partition_bits = partition_bits;
    options.least_log_pages = least_log_pages;
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    index = Open();
  }
  std::unique_ptr<ChunkIndex> Open() {
    auto opened = OpenFlashIndex(env, options, engine.make(engine.parameters));
    REQUIRE_OK(opened);
    return std::move(*opened);
  }
  // The manifest of an index that is not open, to be forged.
  std::unique_ptr<StateMap> OpenManifest() {
    auto manifest = std::make_unique<StateMap>(env, kDirectory);
    REQUIRE_OK(manifest->Read());
    REQUIRE_OK(manifest->FinishRead());
    return manifest;
  }
  static IndexEntry Numbered(uint64_t number, uint32_t version) {
    return {NameOf(number), {.segment = static_cast<SegmentId>(number + 1), .ordinal = version}};
  }
  // Puts one name after the other, until one fails.
  Status TryPut(uint64_t first, uint64_t count, uint32_t version = 1) {
    for (uint64_t i = first; i < first + count; ++i) {
      const IndexEntry entry = Numbered(i, version);
      Status put = index->Put({&entry, 1}, sequence + 1);
      if (!put.ok()) return put;
      ++sequence;
      versions[i] = version;
    }
    return Status::Ok();
  }
  void Put(uint64_t first, uint64_t count, uint32_t version = 1) {
    REQUIRE_OK(TryPut(first, count, version));
  }
  void Check() {
    std::vector<ChunkName> names;
    for (const auto& [number, version] : versions) names.push_back(NameOf(number));
    std::vector<Answer> answers(names.size());
    REQUIRE_OK(index->Get(names, answers));
    size_t at = 0;
    for (const auto& [number, version] : versions) {
      INFO("number " << number);
      REQUIRE(answers[at++] == Numbered(number, version).location);
    }
    REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  }
  uint64_t UsedBytes() {
    const auto space = env.GetDiskSpace(kDirectory);
    REQUIRE_OK(space);
    return space->total_bytes - space->free_bytes;
  }
  uint64_t MemoryOf(const std::string& kind) const {
    uint64_t bytes = 0;
    for (const auto& store : index->stats().stores) {
      if (store.kind == kind) bytes += store.memory_bytes;
    }
    return bytes;
  }
  uint64_t FlashOf(const std::string& kind) const {
    uint64_t bytes = 0;
    for (const auto& store : index->stats().stores) {
      if (store.kind == kind) bytes += store.flash_bytes;
    }
    return bytes;
  }
  uint64_t FilterMemory() const {
    uint64_t bytes = 0;
    for (const auto& store : index->stats().stores) bytes += store.filter_memory_bytes;
    return bytes;
  }

  SimEnv env;
  const TestEngine engine;
  FlashIndexOptions options{.directory = kDirectory, .hash_secret = 1, .most_pages_per_file = 8};
  std::unique_ptr<ChunkIndex> index;
  uint64_t sequence = 0;
  std::map<uint64_t, uint32_t> versions;
};

}  // namespace

TEST_CASE("a put that finds a full disk removes files that are no longer needed, and goes on") {
  const TestEngine& engine = GENERATE(from_range(TestEngines()));
  const uint64_t nth = GENERATE(1, 2, 5, 11);
  INFO(engine.name << ", write " << nth);
  Fixture fixture(engine);
  fixture.Put(0, 4000);
  const uint64_t removed = fixture.env.Calls(SimCall::kRemove);
  fixture.env.FailCall({.calls = SimCall::kWrite,
                        .nth = nth,
                        .code = StatusCode::kNoSpace,
                        .path_part = ".pages",
                        .bytes_written = 5000});
  fixture.Put(4000, 3000);
  CHECK(fixture.env.Calls(SimCall::kRemove) > removed + 2);
  fixture.Check();
  fixture.env.PowerCut();
  fixture.index = fixture.Open();
  CHECK(fixture.index->durable_sequence() == 0);  // nothing was flushed
}

TEST_CASE("a flush on a full disk removes files that are no longer needed") {
  const TestEngine& engine = GENERATE(from_range(TestEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  fixture.Put(0, 4000);
  // The flush needs a page for the last puts; it finds none at first.
  fixture.env.FailCall(
      {.calls = SimCall::kWrite, .nth = 1, .code = StatusCode::kNoSpace, .path_part = ".pages"});
  REQUIRE_OK(fixture.index->Flush());
  CHECK(fixture.index->durable_sequence() == 3999);
  fixture.env.PowerCut();
  fixture.index = fixture.Open();
  fixture.Check();
}

TEST_CASE("entries of a put that made a checkpoint in between are not durable before its end") {
  Fixture fixture(TestEngines()[0]);
  fixture.Put(0, 4000);
  REQUIRE_OK(fixture.index->Flush());
  fixture.Put(4000, 3000);
  std::vector<IndexEntry> entries;
  for (uint64_t i = 7000; i < 9000; ++i) entries.push_back(Fixture::Numbered(i, 1));
  fixture.env.FailCall(
      {.calls = SimCall::kWrite, .nth = 20, .code = StatusCode::kNoSpace, .path_part = ".pages"});
  const uint64_t removed = fixture.env.Calls(SimCall::kRemove);
  REQUIRE_OK(fixture.index->Put(entries, 9000));
  CHECK(fixture.env.Calls(SimCall::kRemove) > removed);  // the checkpoint was made
  CHECK(fixture.index->durable_sequence() == 3999);
  fixture.env.PowerCut();
  fixture.index = fixture.Open();
  CHECK(fixture.index->durable_sequence() == 3999);
  for (uint64_t i = 4000; i < 7000; ++i) fixture.versions.erase(i);
  fixture.Check();
  // The store puts them again.
  fixture.sequence = 3999;
  fixture.Put(4000, 5000, 7);
  REQUIRE_OK(fixture.index->Close());
  fixture.index = fixture.Open();
  fixture.Check();
}

TEST_CASE("without room for a new log of puts, a checkpoint keeps the old one") {
  const TestEngine& engine = GENERATE(from_range(TestEngines()));
  INFO(engine.name);
  const auto put_all = [](Fixture& fixture) {
    for (uint32_t version = 1; version <= 4; ++version) fixture.Put(0, 6000, version);
  };
  uint64_t needed = 0;  // bytes, of a checkpoint that keeps the log
  {
    Fixture fixture(engine, 7, 1'000'000);
    put_all(fixture);
    const uint64_t before = fixture.UsedBytes();
    REQUIRE_OK(fixture.index->Flush());
    needed = fixture.UsedBytes() - before;
  }
  Fixture fixture(engine, 7, 4);  // with buffers for 6,000 entries
  put_all(fixture);
  const uint64_t pages = GENERATE(range(0, 60, 3));
  INFO(pages << " pages more than the last checkpoint needs");
  const uint64_t used = fixture.UsedBytes();
  fixture.env.SetCapacity(used + needed + pages * kPageSize);
  REQUIRE_OK(fixture.index->Flush());
  const uint64_t durable = fixture.index->durable_sequence();
  CHECK(durable == 23'999);  // another put may have the last sequence
  const uint64_t entries_bytes = fixture.FlashOf("put_log");
  const bool kept = entries_bytes > 4 * 6000 * 20;
  if (pages < 30) CHECK(kept);
  if (pages > 40) CHECK_FALSE(kept);
  if (kept) CHECK(fixture.UsedBytes() <= used + needed + kPageSize);
  fixture.Check();
  fixture.env.PowerCut();
  fixture.env.SetCapacity(SimEnv::kUnlimited);
  fixture.index = fixture.Open();
  fixture.Check();
  fixture.Put(0, 1000, 9);
  REQUIRE_OK(fixture.index->Flush());
  fixture.env.PowerCut();
  fixture.index = fixture.Open();
  fixture.Check();
}

TEST_CASE("a split that finds a full disk gives back what it has written") {
  const TestEngine& engine = GENERATE(from_range(TestEngines()));
  INFO(engine.name);
  uint64_t splitting = 500;  // the put that splits the partition
  {
    Fixture fixture(engine);
    fixture.Put(0, splitting);
    while (fixture.index->stats().merges == 0) fixture.Put(splitting++, 1);
    --splitting;
  }
  const uint64_t nth = GENERATE(1, 2, 3, 4);
  Fixture fixture(engine);
  fixture.Put(0, splitting);
  REQUIRE_OK(fixture.index->Flush());
  const uint64_t used = fixture.UsedBytes();
  fixture.env.FailCall({.calls = SimCall::kWrite,
                        .nth = nth,
                        .code = StatusCode::kNoSpace,
                        .sticky = true,
                        .path_part = "",
                        .bytes_written = 9000});
  const Status put = fixture.TryPut(splitting, 1);
  if (!put.ok()) {
    CHECK(put.Is(StatusCode::kNoSpace));
    CHECK(fixture.UsedBytes() <= used);
    CHECK(fixture.index->stats().merges == 0);
  }
  CHECK((nth > 2 || !put.ok()));  // each half is written
  fixture.Check();
  fixture.env.ClearFaults();
  fixture.Put(splitting, 1000);
  CHECK(fixture.index->stats().merges > 0);
  fixture.Check();
  REQUIRE_OK(fixture.index->Flush());
  fixture.env.PowerCut();
  fixture.index = fixture.Open();
  fixture.Check();
}

TEST_CASE("a rewrite leaves no filters that the memory limit has no room for") {
  TestEngine engine = GENERATE(from_range(TestEngines()));
  if (std::string(engine.name) == "slice_hash") engine.parameters.push_back({"filter_bits", 10});
  INFO(engine.name);
  Fixture fixture(engine);
  fixture.Put(0, 6000);
  CHECK(fixture.FilterMemory() > 2000);
  REQUIRE_OK(fixture.index->SetMemoryLimit(kLeastFlashMemory));
  REQUIRE(fixture.FilterMemory() == 0);
  fixture.index->SetGone([](SegmentId segment) { return segment > 5000; });
  REQUIRE_OK(fixture.index->DropGone());
  CHECK(fixture.FilterMemory() == 0);
}

TEST_CASE("tables that lookups need leave less of the memory limit for buffers") {
  Fixture fixture(
      {"skimpy_stash", MakeSkimpyStashEngine, {{"capacity_bits", 14}, {"entries_per_bucket", 1}}},
      4);
  fixture.Put(0, 16 * 200);  // each partition has heads of 64 KiB now
  const uint64_t heads = 16 * (uint64_t{1} << 16);
  REQUIRE_OK(fixture.index->SetMemoryLimit(kLeastFlashMemory + heads + 24'000));
  fixture.Put(10'000, 16 * 150);
  CHECK(fixture.MemoryOf("buffer") <= 24'000);
  CHECK(fixture.FilterMemory() == 0);
  CHECK(fixture.index->stats().memory_bytes <= kLeastFlashMemory + heads + 24'000);
  fixture.Check();
}

TEST_CASE("a log of puts with more entries than the buffers have room for is refused") {
  TestEngine engine = TestEngines()[0];
  Fixture fixture(engine);
  fixture.Put(0, 120);
  REQUIRE_OK(fixture.index->Close());
  fixture.index.reset();
  {
    // Forges smaller tables.
    auto manifest = fixture.OpenManifest();
    auto header = DecodeFlashHeader(AsBytes(manifest->records().at(kHeaderRecord)));
    REQUIRE_OK(header);
    header->parameters =
        MakeBufferHashEngine({{"table_bits", 2}, {"incarnations", 8}})->EncodeParameters();
    REQUIRE_OK(manifest->Commit({{kHeaderRecord, EncodeFlashHeader(*header)}}));
  }
  REQUIRE_CODE(OpenFlashIndex(fixture.env, fixture.options, MakeBufferHashEngine({})), kCorruption);
}

TEST_CASE("pages that an earlier process lost track of do not keep their files") {
  const TestEngine& engine = GENERATE(from_range(TestEngines()));
  INFO(engine.name);
  Fixture fixture(engine);
  fixture.Put(0, 5000);
  REQUIRE_OK(fixture.index->Close());
  const uint64_t before = fixture.index->stats().flash_bytes;
  fixture.index.reset();
  {
    auto manifest = fixture.OpenManifest();
    StateMap::Changes changes;
    for (const auto& [number, record] : manifest->records()) {
      if (number < FileRecordOf(0)) continue;
      std::string forged = record;
      forged.replace(16, 4, record, 12, 4);  // all pages are in use
      changes.emplace_back(number, forged);
    }
    REQUIRE(changes.size() > 5);
    REQUIRE_OK(manifest->Commit(changes));
  }
  fixture.index = fixture.Open();
  fixture.Check();
  fixture.index->SetGone([](SegmentId) { return true; });
  REQUIRE_OK(fixture.index->DropGone());
  CHECK(fixture.index->stats().flash_bytes < before / 2);
}

TEST_CASE("an index that contradicts itself is refused when it is opened again") {
  // Nearly equal hashes belong into one page of an incarnation, which has no room for them.
  Fixture fixture(TestEngines()[0]);
  fixture.Put(0, 10);
  REQUIRE_OK(fixture.index->Close());
  fixture.index.reset();
  {
    auto manifest = fixture.OpenManifest();
    std::vector<PageLogSpec> logs = MakeBufferHashEngine({})->Logs(kDirectory);
    logs.push_back({.directory = kDirectory, .pages_per_file = PutLog::kPagesPerFile});
    PageFiles forged(fixture.env, logs, false);
    auto state = DecodeFlashState(manifest->records(), forged);
    REQUIRE_OK(state);
    REQUIRE_OK(forged.Open());
    REQUIRE_OK(forged.RemoveLeftovers());
    PutLog puts(forged, logs.size() - 1);
    REQUIRE_OK(puts.Replay([](uint64_t, const FlashEntry&) { return Status::Ok(); }));
    for (uint64_t i = 1; i <= 240; ++i) {
      REQUIRE_OK(puts.MakeRoom());
      puts.Add({.hash = i, .location = {.segment = 1}});
    }
    REQUIRE_OK(puts.Seal());
    REQUIRE_OK(forged.Sync());
    StateMap::Changes changes;
    for (auto& [id, change] : forged.changes()) changes.emplace_back(FileRecordOf(id), change);
    REQUIRE_OK(manifest->Commit(changes));
  }
  fixture.index = fixture.Open();
  const Status put = fixture.TryPut(10, 200);
  CHECK(put.Is(StatusCode::kCorruption));
  fixture.index.reset();
  REQUIRE_CODE(
      OpenFlashIndex(fixture.env, fixture.options, MakeBufferHashEngine(fixture.engine.parameters)),
      kCorruption);
}

TEST_CASE("filters that cannot be read are missing, and writing goes on") {
  TestEngine engine = GENERATE(from_range(TestEngines()));
  if (std::string(engine.name) == "slice_hash") engine.parameters.push_back({"filter_bits", 10});
  INFO(engine.name);
  Fixture fixture(engine);
  fixture.Put(0, 6000);
  REQUIRE_OK(fixture.index->SetMemoryLimit(kLeastFlashMemory));
  REQUIRE_OK(fixture.index->Flush());
  fixture.env.FailCall({.calls = SimCall::kRead, .nth = 1, .sticky = true, .path_part = ""});
  REQUIRE_OK(fixture.index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(fixture.FilterMemory() == 0);
  fixture.env.ClearFaults();
  fixture.Put(6000, 500);
  fixture.Check();
  REQUIRE_OK(fixture.index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(fixture.FilterMemory() > 2000);
  fixture.Check();
}

}  // namespace siltfs::testing
