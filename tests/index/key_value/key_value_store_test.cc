// Keys and values of any length, with slots of all sizes.
#include "index/key_value/key_value_store.h"

#include "key_value_fixture.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Bytes Repeated(size_t size, uint8_t byte) { return Bytes(size, byte); }

Value GetOf(KeyValueStore& store, const std::string& key) {
  auto got = store.Get(AsBytes(key));
  REQUIRE_OK(got);
  return *got;
}

}  // namespace

TEST_CASE("a key-value store answers as a map does, through conversions, merges and reopening") {
  const size_t slot_size = GENERATE(32, 64, 128, 512, 2048);
  const uint64_t memory_limit = GENERATE(kNoMemoryLimit, uint64_t{0});
  const bool background = GENERATE(false, true);
  KeyValueFixture fixture(slot_size);
  fixture.options.index.memory_limit = memory_limit;
  fixture.options.index.background = background;
  KeyValueHistory history;
  for (uint64_t life = 1; life <= 4; ++life) {
    INFO("slots of " << slot_size << ", life " << life);
    auto store = fixture.Open();
    const KeyValueWorkload workload{.seed = 10 * slot_size + life, .steps = 300, .keys = 200};
    REQUIRE(RunWorkload(*store, history, workload) == 0);
    CheckNow(*store, history);
    CheckVerifies(*store);
    REQUIRE_OK(store->Close());
    history.NoteFlushed();
  }
  auto store = fixture.Open();
  CheckNow(*store, history);
  store.reset();  // otherwise its merges would remove files that the next store uses
  fixture.options.read_only = true;
  store = fixture.Open();
  CheckNow(*store, history);
  CHECK(store->Put(AsBytes("key"), {}).Is(StatusCode::kReadOnly));
  CHECK(store->Delete(AsBytes("key")).Is(StatusCode::kReadOnly));
}

TEST_CASE("an item that fits its slot takes one read, a larger one two") {
  const size_t slot_size = GENERATE(64, 256, 2048);
  KeyValueFixture fixture(slot_size);
  fixture.options.index.bucket_bits = 8;
  auto store = fixture.Open();
  // The key takes 8 bytes. The item's header takes 6, or 7 if the value has at least 128 bytes.
  const size_t fits = slot_size - 32 - 8 - (slot_size == 64 ? 6 : 7);
  REQUIRE(store->IsInlined(8, fits));
  REQUIRE_FALSE(store->IsInlined(8, fits + 1));
  const auto key = [](uint64_t i) { return std::to_string(10'000'000 + i); };
  constexpr uint64_t kKeys = 3000;
  for (uint64_t i = 0; i < kKeys; ++i) {
    const size_t size = i % 2 == 0 ? fits : fits + 1;
    REQUIRE_OK(store->Put(AsBytes(key(i)), Repeated(size, static_cast<uint8_t>(i))));
  }
  REQUIRE_OK(store->Close());
  store = fixture.Open();
  const auto reads_for = [&](uint64_t first) {
    const uint64_t before = store->stats().flash_reads;
    for (uint64_t i = first; i < kKeys; i += 2) {
      REQUIRE(GetOf(*store, key(i))->at(0) == static_cast<uint8_t>(i));
    }
    return static_cast<double>(store->stats().flash_reads - before) / (kKeys / 2);
  };
  // The counts are not exact: filters have some false positives, and the index's newest entries are
  // read from logs.
  CHECK(reads_for(0) == Approx(1).margin(0.05));
  CHECK(reads_for(1) == Approx(2).margin(0.05));
  CHECK(store->stats().values.records == kKeys / 2);
}

TEST_CASE("a listing finds values that Reclaim moves during the listing") {
  KeyValueFixture fixture(64);
  auto store = fixture.Open();
  constexpr uint64_t kKeys = 50;
  for (uint64_t i = 0; i < kKeys; ++i) {
    REQUIRE_OK(store->Put(AsBytes(KeyOf(i)), Repeated(2000, static_cast<uint8_t>(i))));
  }
  uint64_t seen = 0;
  const auto visit = [&](const Item& item) -> Status {
    const Bytes value(item.value.begin(), item.value.end());
    REQUIRE(GetOf(*store, std::string(AsText(item.key))) == value);
    if (seen++ > 0) return Status::Ok();
    const auto moved = store->Reclaim({.most_in_use = 1});
    REQUIRE_OK(moved);
    REQUIRE(moved->records_moved == kKeys);
    REQUIRE(moved->segments_removed > 1);
    return Status::Ok();
  };
  REQUIRE_OK(store->ForEach(visit));
  CHECK(seen == kKeys);
}

TEST_CASE("the small segments that many openings leave are combined") {
  KeyValueFixture fixture(64);
  fixture.options.values.segment_bytes = 100'000;
  constexpr uint64_t kLives = 12;
  for (uint64_t life = 0; life < kLives; ++life) {
    auto store = fixture.Open();
    REQUIRE_OK(store->Put(AsBytes(KeyOf(life)), Repeated(2000, static_cast<uint8_t>(life))));
    REQUIRE_OK(store->Close());
  }
  auto store = fixture.Open();
  auto result = store->Reclaim({.most_in_use = 0, .most_small_segments = kLives});
  REQUIRE_OK(result);
  CHECK(result->segments_removed == 0);
  result = store->Reclaim({.most_in_use = 0, .most_small_segments = kLives - 1});
  REQUIRE_OK(result);
  CHECK(result->segments_removed == kLives);
  CHECK(result->records_moved == kLives);
  for (uint64_t life = 0; life < kLives; ++life) {
    CHECK(GetOf(*store, KeyOf(life)) == Repeated(2000, static_cast<uint8_t>(life)));
  }
}

TEST_CASE("keys and values of at most the largest size are accepted, larger ones refused") {
  KeyValueFixture fixture(128);
  auto store = fixture.Open();
  const Bytes longest_key = Repeated(kMaxKeySize, 'k');
  const Bytes longest_value = Repeated(kMaxValueSize, 'v');
  REQUIRE_OK(store->Put(longest_key, longest_value));
  REQUIRE_OK(store->Put({}, {}));
  auto got = store->Get(longest_key);
  REQUIRE_OK(got);
  CHECK(**got == longest_value);
  CHECK(GetOf(*store, "") == Bytes());
  CHECK(store->Put(Repeated(kMaxKeySize + 1, 'k'), {}).Is(StatusCode::kInvalidArgument));
  CHECK(store->Put({}, Repeated(kMaxValueSize + 1, 'v')).Is(StatusCode::kInvalidArgument));
  CHECK(GetOf(*store, "") == Bytes());
}

TEST_CASE("a store keeps its slot size, and only some slot sizes are valid") {
  KeyValueFixture fixture(256);
  REQUIRE_OK(fixture.Open()->Close());
  fixture.options.slot_size = 64;
  CHECK(fixture.Open()->slot_size() == 256);
  for (const size_t size : {0, 16, 48, 4096}) {
    KeyValueFixture other(size);
    CHECK(KeyValueStore::Open(other.env, other.options).status().Is(StatusCode::kInvalidArgument));
  }
}

TEST_CASE("opening read-only creates no store and writes nothing") {
  KeyValueFixture fixture(64);
  fixture.options.read_only = true;
  const uint64_t before = fixture.env.Calls(SimCall::kMutating);
  CHECK(KeyValueStore::Open(fixture.env, fixture.options).status().Is(StatusCode::kNotFound));
  CHECK(fixture.env.Calls(SimCall::kMutating) == before);
}

TEST_CASE("lost durable entries are reported, and accepted only if the options say so") {
  KeyValueFixture fixture(64);
  fixture.options.index.bucket_bits = 8;
  fixture.options.index.max_log_pages = 4096;
  fixture.options.index.partition_bits = 0;
  auto store = fixture.Open();
  for (uint64_t i = 0; i < 600; ++i) REQUIRE_OK(store->Put(AsBytes(KeyOf(i)), Repeated(5, 1)));
  REQUIRE_OK(store->Close());
  store.reset();
  // Damages the second page of the only log.
  auto entries = fixture.env.ListDirectory("/store/index");
  REQUIRE_OK(entries);
  for (const auto& entry : *entries) {
    if (!entry.name.ends_with(".log")) continue;
    auto file = fixture.env.OpenFile("/store/index/" + entry.name, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(kPageSize + 100, Bytes(10, 0xee)));
    REQUIRE_OK((*file)->Sync());
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto opened = KeyValueStore::Open(fixture.env, fixture.options);
    REQUIRE(opened.status().Is(StatusCode::kCorruption));
  }
  fixture.options.index.accept_lost_entries = true;
  store = fixture.Open();
  CHECK(GetOf(*store, KeyOf(0)) == Repeated(5, 1));
  CHECK_FALSE(GetOf(*store, KeyOf(599)).has_value());
}

TEST_CASE("a closed store refuses calls") {
  KeyValueFixture fixture(64);
  auto store = fixture.Open();
  REQUIRE_OK(store->Close());
  CHECK(store->Put(AsBytes("key"), {}).Is(StatusCode::kInvalidArgument));
  CHECK(store->Get(AsBytes("key")).status().Is(StatusCode::kInvalidArgument));
  CHECK(store->Close().Is(StatusCode::kInvalidArgument));
}

TEST_CASE("Reclaim frees the space of dead values and removes no others") {
  const size_t slot_size = GENERATE(32, 64, 256);
  KeyValueFixture fixture(slot_size);
  fixture.options.values.segment_bytes = 100'000;
  auto store = fixture.Open();
  KeyValueHistory history;
  Random random(slot_size);
  constexpr uint64_t kKeys = 100;
  const auto put = [&](uint64_t number) {
    Bytes value(1000 + random.Below(1000));
    random.Fill(value);
    REQUIRE_OK(store->Put(AsBytes(KeyOf(number)), value));
    history.Note(KeyOf(number), value, true);
  };
  // Each key is put ten times; only its tenth value is in use.
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < kKeys; ++i) put(i);
  }
  REQUIRE_OK(store->Flush());
  const uint64_t before = store->stats().values.flash_bytes;
  auto result = store->Reclaim({.most_in_use = 0.5});
  REQUIRE_OK(result);
  CHECK(result->segments_removed > 10);
  CHECK(store->stats().values.flash_bytes < before / 4);
  CHECK(result->bytes_removed > before / 2);
  CheckNow(*store, history);
  CheckVerifies(*store);
  // Moved records are not moved again, and no more space can be freed.
  result = store->Reclaim({.most_in_use = 0.5});
  REQUIRE_OK(result);
  CHECK(result->records_moved <= kKeys / 2);
  // After all values are deleted, all segments are removed.
  for (uint64_t i = 0; i < kKeys; ++i) {
    REQUIRE_OK(store->Delete(AsBytes(KeyOf(i))));
    history.Note(KeyOf(i), std::nullopt, true);
  }
  REQUIRE_OK(store->Reclaim({.most_in_use = 0}));
  CHECK(store->stats().values.records == 0);
  REQUIRE_OK(store->Close());
  store = fixture.Open();
  CheckNow(*store, history);
  CHECK(store->Reclaim({.most_in_use = 1.5}).status().Is(StatusCode::kInvalidArgument));
}

TEST_CASE("Reclaim flushes even if it frees no space") {
  KeyValueFixture fixture(64);
  auto store = fixture.Open();
  REQUIRE_OK(store->Put(AsBytes("small"), Repeated(5, 1)));
  REQUIRE_OK(store->Put(AsBytes("large"), Repeated(500, 2)));
  auto result = store->Reclaim({.most_in_use = 0.5});
  REQUIRE_OK(result);
  REQUIRE(result->segments_removed == 0);
  store.reset();
  fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop});
  store = fixture.Open();
  CHECK(GetOf(*store, "small") == Repeated(5, 1));
  CHECK(GetOf(*store, "large") == Repeated(500, 2));
}

TEST_CASE("damaged bytes are never returned as a value") {
  const size_t slot_size = GENERATE(64, 512);
  const std::string kind = GENERATE("values", "index");
  KeyValueFixture fixture(slot_size);
  KeyValueHistory history;
  auto store = fixture.Open();
  REQUIRE(RunWorkload(*store, history, {.seed = 5, .steps = 300, .keys = 60}) == 0);
  REQUIRE_OK(store->Close());
  history.NoteFlushed();
  store.reset();
  Random random(slot_size);
  int noticed = 0;
  for (int round = 0; round < 150; ++round) {
    auto env = fixture.env.Fork();
    // Changes one byte of one file of the index, or of one segment.
    std::vector<std::string> paths;
    std::vector<std::string> directories = {"/store/" + kind};
    while (!directories.empty()) {
      const std::string directory = directories.back();
      directories.pop_back();
      auto entries = env->ListDirectory(directory);
      REQUIRE_OK(entries);
      for (const auto& entry : *entries) {
        const std::string path = directory + "/" + entry.name;
        auto info = env->GetFileInfo(path);
        REQUIRE_OK(info);
        if (info->type == FileType::kDirectory) {
          directories.push_back(path);
        } else if (info->size > 0) {
          paths.push_back(path);
        }
      }
    }
    const std::string path = paths[random.Below(paths.size())];
    auto file = env->OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    auto size = (*file)->Size();
    REQUIRE_OK(size);
    const uint64_t offset = random.Below(*size);
    std::array<uint8_t, 1> byte{};
    REQUIRE_OK((*file)->Read(offset, byte));
    byte[0] ^= static_cast<uint8_t>(1U << random.Below(8));
    REQUIRE_OK((*file)->Write(offset, byte));
    INFO(path << " at " << offset);
    auto opened = KeyValueStore::Open(*env, fixture.options);
    if (!opened.ok()) {
      REQUIRE(opened.status().Is(StatusCode::kCorruption));
      ++noticed;
      continue;
    }
    bool wrong = false;
    for (const std::string& key : history.Keys()) {
      auto got = (*opened)->Get(AsBytes(key));
      if (!got.ok()) {
        REQUIRE(got.status().Is(StatusCode::kCorruption));
        wrong = true;
      } else if (!history.MayAnswerNow(key, *got)) {
        // Damage has changed the name in the slot. So the key is missing, or has an older value.
        REQUIRE(kind == "index");
        REQUIRE(history.MayAnswerAfterCrash(key, *got) == false);
        wrong = true;
      }
    }
    bool found = false;
    REQUIRE_OK((*opened)->Verify([&](const IndexFinding&) { found = true; }));
    if (wrong) REQUIRE(found);
    noticed += found ? 1 : 0;
  }
  CHECK(noticed > 75);
}

}  // namespace siltfs::testing
