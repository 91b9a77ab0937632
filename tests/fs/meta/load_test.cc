// Loads (KvLoad), tested on every row of the table of engines: what readers see, power cuts, full
// and failing disks, salvage.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "fs/kv/metadata_engine.h"
#include "fs/meta/open_kv_store.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fs/meta/log_kv_store.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs {
namespace {

using testing::Put;
using testing::Remove;
using Mode = KvStoreOptions::Mode;
using Contents = std::map<std::string, std::string>;
using Unsynced = CrashPolicy::Unsynced;

constexpr char kPath[] = "/kv";
constexpr char kLedger[] = "/kv.ledger";

std::vector<std::string> EngineNames() {
  testing::RegisterLogEngine();
  std::vector<std::string> names;
  for (const MetadataEngine* engine : MetadataEngines()) names.emplace_back(engine->name);
  return names;
}

#define FOR_EACH_ENGINE(engine) \
  for (const std::string& engine : EngineNames()) DYNAMIC_SECTION("on " << engine)

KvStoreOptions At(Mode mode) {
  return {.path = kPath, .mode = mode, .ledger_path = kLedger, .loaded_bytes = "ln"};
}

Contents All(const KvStore& store) {
  Contents contents;
  const auto snapshot = store.Snapshot();
  const auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next())
    contents.emplace(iterator->key(), iterator->value());
  REQUIRE_OK(iterator->status());
  return contents;
}

// Records before, between and behind those of loads.
std::vector<Mutation> Others(int number) {
  const std::string text = std::to_string(number);
  return {Put("a", text), Put("m" + text, text), Put("z", text)};
}

// The records of load `number`, which come in `parts` parts.
Contents Loaded(char table, int number, int part) {
  Contents records;
  for (int i = 0; i < 30; ++i)
    records[fmt::format("{}{:03}-{:02}-{:02}", table, number, part, i)] = std::string(90, 'v');
  return records;
}

Status AddTo(KvLoad& load, const Contents& records) {
  KvRun run;
  for (const auto& [key, value] : records) run.push_back({key, value});
  return load.Add(run);
}

// Makes a load of two tables, with several runs each, and calls Load.
Status Load(KvStore& store, int number, bool descending = false) {
  SILTFS_ASSIGN_OR_RETURN(const auto load, store.NewLoad());
  for (int part = 0; part < 3; ++part) {
    for (const char table : {'l', 'n'}) {
      SILTFS_RETURN_IF_ERROR(AddTo(*load, Loaded(table, number, descending ? 9 - part : part)));
    }
  }
  return load->Load();
}

Contents With(Contents contents, int others, int load = 0, bool descending = false) {
  for (int number = 1; number <= others; ++number) {
    for (const Mutation& put : Others(number)) contents[put.key] = *put.value;
  }
  for (int part = 0; load > 0 && part < 3; ++part) {
    for (const char table : {'l', 'n'})
      contents.merge(Loaded(table, load, descending ? 9 - part : part));
  }
  return contents;
}

// Whether `found` is `others`, with some records of the load.
bool IsPart(const Contents& found, const Contents& others, int load) {
  const Contents all = With(others, 0, load);
  return std::ranges::includes(all, found) && std::ranges::includes(found, others);
}

// An engine's store on a simulated device.
struct Device {
  explicit Device(std::string of) : engine(std::move(of)) {
    auto store = OpenKvStore(env, engine, At(Mode::kCreate));
    REQUIRE_OK(store);
    REQUIRE_OK((*store)->Write(Others(1)));
    REQUIRE_OK((*store)->CloseCleanly());
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<KvStore> Open(Mode mode = Mode::kOpen) {
    auto store = OpenKvStore(env, engine, At(mode));
    REQUIRE_OK(store);
    return std::move(*store);
  }
  // The number of files that do not belong to the store yet.
  size_t LeftFiles() {
    const auto entries = env.ListDirectory(kPath);
    REQUIRE_OK(entries);
    return static_cast<size_t>(std::ranges::count_if(
        *entries,
        [](const siltfs::DirectoryEntry& entry) { return entry.name.starts_with("load-"); }));
  }
  Contents Salvage() {
    const auto row = FindMetadataEngine(engine);
    REQUIRE_OK(row);
    Contents contents;
    const auto salvage = (*row)->salvage(env, At(Mode::kReadOnly),
                                         [&](std::string_view key, std::string_view value) {
                                           contents.emplace(key, value);
                                           return Status::Ok();
                                         });
    REQUIRE_OK(salvage);
    CHECK(salvage->losses.empty());
    return contents;
  }

  SimEnv env;
  const std::string engine;
};

}  // namespace

TEST_CASE("The records of a load are in the store after Load, and only then") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    const bool descending = GENERATE(false, true);
    auto store = device.Open();
    {
      const auto load = store->NewLoad();
      REQUIRE_OK(load);
      for (const char table : {'l', 'n'}) REQUIRE_OK(AddTo(**load, Loaded(table, 8, 0)));
      CHECK(IsPart(All(*store), With({}, 1), 8));
    }
    const Contents before = All(*store);
    CHECK(IsPart(before, With({}, 1), 8));
    CHECK((engine != "rocksdb" || before == With({}, 1)));
    CHECK(device.LeftFiles() == 0);
    {
      const auto empty = store->NewLoad();
      REQUIRE_OK(empty);
      REQUIRE_OK((*empty)->Add({}));
      REQUIRE_OK((*empty)->Load());
    }
    REQUIRE_OK(Load(*store, 5, descending));
    REQUIRE_OK(Load(*store, 4));  // below the others
    const Contents loaded = With(With(before, 1, 5, descending), 1, 4);
    CHECK(All(*store) == loaded);
    CHECK(device.LeftFiles() == 0);
    REQUIRE_OK(store->VerifyChecksums());
    REQUIRE_OK(store->Write(Others(2)));
    store.reset();
    device.env.PowerCut();
    CHECK(device.Salvage() == With(loaded, 2));
    CHECK(All(*device.Open(Mode::kReadOnly)) == With(loaded, 2));
    store = device.Open();
    CHECK(All(*store) == With(loaded, 2));
    REQUIRE_OK(store->CloseCleanly());
    REQUIRE_CODE(Load(*device.Open(Mode::kReadOnly), 6), kReadOnly);
  }
}

TEST_CASE("Later changes of loaded records are the newest, also for a salvage") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    const int closes = GENERATE(0, 1, 3);
    Contents expected = With({}, 1, 3);
    {
      auto store = device.Open();
      REQUIRE_OK(Load(*store, 3));
      for (int i = 0; i <= closes; ++i) {
        const std::string changed = fmt::format("l003-01-{:02}", i);
        const std::string removed = fmt::format("n003-00-{:02}", i);
        REQUIRE_OK(store->Write({Put(changed, "new"), Remove(removed)}));
        expected[changed] = "new";
        expected.erase(removed);
        if (i == closes) break;
        REQUIRE_OK(store->CloseCleanly());
        store = device.Open();
      }
      CHECK(All(*store) == expected);
    }
    device.env.PowerCut();
    CHECK(device.Salvage() == expected);
    CHECK(All(*device.Open()) == expected);
  }
}

TEST_CASE(
    "A power cut in any call of a load leaves nothing but whole records, and all loaded ones") {
  FOR_EACH_ENGINE(engine) {
    const auto unsynced =
        GENERATE(Unsynced::kDrop, Unsynced::kPrefix, Unsynced::kSubset, Unsynced::kKeep);
    uint64_t with = 0;
    uint64_t without = 0;
    bool cut = true;
    for (uint64_t nth = 1; cut; nth += testing::SanitizedStep()) {
      CAPTURE(nth);
      Device device(engine);
      device.env.CutAtCall(nth);
      int writes = 1;
      bool loaded = false;
      if (const auto store = OpenKvStore(device.env, engine, At(Mode::kOpen)); store.ok()) {
        if ((*store)->Write(Others(2)).ok()) writes = 2;
        if (writes == 2) loaded = Load(**store, 5).ok();
        if (loaded && (*store)->Write(Others(3)).ok()) writes = 3;
        if (writes == 3) (*store)->CloseCleanly().IgnoreError("the power is off");
      }
      cut = !device.env.PowerIsOn();
      device.env.Reboot({.unsynced = unsynced, .seed = nth, .names_in_any_order = nth % 3 == 0});
      const auto allowed = [&](const Contents& contents) {
        return contents == With({}, writes, loaded ? 5 : 0) ||
               (writes < 3 && contents == With({}, writes + 1, loaded ? 5 : 0)) ||
               (writes == 2 && !loaded && contents == With({}, writes, 5)) ||
               (writes == 2 && !loaded && engine != "rocksdb" &&
                IsPart(contents, With({}, writes), 5));
      };
      REQUIRE(allowed(All(*device.Open(Mode::kReadOnly))));
      const Contents recovered = All(*device.Open());
      REQUIRE(allowed(recovered));
      REQUIRE(device.LeftFiles() == 0);
      ++(recovered.contains("n005-02-29") ? with : without);
      device.env.PowerCut();
      REQUIRE(device.Salvage() == recovered);
      const auto store = device.Open();
      REQUIRE(All(*store) == recovered);
      REQUIRE_OK(Load(*store, 6));
      REQUIRE_OK(store->Write(Others(1)));
      REQUIRE_OK(store->VerifyChecksums());
      REQUIRE(nth < 1000);
    }
    CHECK((testing::kIsSanitized || with > 0));
    CHECK((testing::kIsSanitized || without > 0));
  }
}

TEST_CASE(
    "After a failure in any call of a load the store is as before, or has some of its records") {
  FOR_EACH_ENGINE(engine) {
    const StatusCode code = GENERATE(StatusCode::kNoSpace, StatusCode::kIoError);
    const bool sticky = GENERATE(false, true);
    uint64_t failed = 0;
    bool ended = false;
    for (uint64_t nth = 1; !ended; nth += testing::SanitizedStep()) {
      CAPTURE(nth);
      Device device(engine);
      Contents expected = With({}, 2);
      {
        const auto store = device.Open();
        REQUIRE_OK(store->Write(Others(2)));
        device.env.FailCall(
            {.calls = SimCall::kMutating, .nth = nth, .code = code, .sticky = sticky});
        const Status loaded = Load(*store, 5);
        ended = loaded.ok();
        device.env.ClearFaults();
        if (!loaded.ok()) {
          ++failed;
          REQUIRE(loaded.Is(code));
          expected = All(*store);
          CHECK(IsPart(expected, With({}, 2), 5));
          CHECK((engine != "rocksdb" || expected == With({}, 2)));
          const Status again = Load(*store, 6);
          if (code == StatusCode::kNoSpace) REQUIRE_OK(again);  // there is room now
          if (again.ok()) expected = With(expected, 2, 6);
          const Status written = store->Write(Others(3));
          CHECK(written.ok() == again.ok());
          if (written.ok()) expected = With(expected, 3);
          CHECK(All(*store) == expected);
          if (written.ok() && nth % 2 == 0) REQUIRE_OK(store->CloseCleanly());
        } else {
          expected = With({}, 2, 5);
        }
      }
      device.env.PowerCut({.unsynced = nth % 3 == 0 ? Unsynced::kDrop : Unsynced::kKeep});
      const auto store = device.Open();
      const Contents found = All(*store);
      const bool as_expected = found == expected;
      // A failed load may have reached the device.
      REQUIRE((as_expected || (code == StatusCode::kIoError && IsPart(found, expected, 5))));
      CHECK(device.LeftFiles() == 0);
      REQUIRE_OK(store->VerifyChecksums());
      REQUIRE_OK(store->CloseCleanly());
      REQUIRE(nth < 1000);
    }
    CHECK(failed > 0);
  }
}

}  // namespace siltfs
