// The contract of a metadata engine beyond KvStore's (kv_store_test.cc), tested on every row of the
// table of engines: opening, power cuts, full and failing disks, salvage.
#include "fs/kv/metadata_engine.h"

#include <map>

#include "fs/meta/open_kv_store.h"
#include "store/base/engine_parameter.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fs/meta/log_kv_store.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/simulated_store.h"
#include "tests/support/crash_points.h"

namespace siltfs {
namespace {

using testing::Entries;
using testing::Put;
using testing::Read;
using testing::Remove;
using Mode = KvStoreOptions::Mode;

constexpr char kPath[] = "/kv";
constexpr char kLedger[] = "/kv.ledger";

// The names of all engines, including the engine that only tests use.
std::vector<std::string> EngineNames() {
  testing::RegisterLogEngine();
  std::vector<std::string> names;
  for (const MetadataEngine* engine : MetadataEngines()) names.emplace_back(engine->name);
  return names;
}

const MetadataEngine& EngineOf(const std::string& name) {
  const auto found = FindMetadataEngine(name);
  REQUIRE_OK(found);
  return **found;
}

#define FOR_EACH_ENGINE(engine) \
  for (const std::string& engine : EngineNames()) DYNAMIC_SECTION("on " << engine)

KvStoreOptions At(Mode mode) { return {.path = kPath, .mode = mode, .ledger_path = kLedger}; }

// An engine's store on a simulated device.
struct Device {
  explicit Device(std::string of) : engine(std::move(of)) {
    auto store = OpenKvStore(env, engine, At(Mode::kCreate));
    REQUIRE_OK(store);
    REQUIRE_OK((*store)->CloseCleanly());
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<KvStore> Open(Mode mode = Mode::kOpen) {
    auto store = OpenKvStore(env, engine, At(mode));
    REQUIRE_OK(store);
    return std::move(*store);
  }

  SimEnv env;
  const std::string engine;
};

Entries All(const KvStore& store) {
  Entries entries;
  const auto snapshot = store.Snapshot();
  const auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next())
    entries.emplace_back(iterator->key(), iterator->value());
  REQUIRE_OK(iterator->status());
  return entries;
}

// Write number n sets "a" and "b" to n and removes the key of the write before it.
std::vector<Mutation> Numbered(uint64_t n) {
  const std::string text = std::to_string(n);
  return {Put("a", text), Put("b", text), Put("key " + text, std::string(2000, 'x')),
          Remove("key " + std::to_string(n - 1))};
}

Entries AfterWrite(uint64_t n) {
  if (n == 0) return {};
  const std::string text = std::to_string(n);
  return {{"a", text}, {"b", text}, {"key " + text, std::string(2000, 'x')}};
}

}  // namespace

TEST_CASE("A metadata engine's name fits the superblock, and finds the engine") {
  FOR_EACH_ENGINE(engine) {
    CHECK(IsEngineWord(engine, kEngineNameSize));
    CHECK(EngineOf(engine).name == engine);
  }
  CHECK(EngineOf("").name == "rocksdb");
}

TEST_CASE("An unknown metadata engine is an error whose text names the engine") {
  SimEnv env;
  const auto opened = OpenKvStore(env, "oak", At(Mode::kOpen));
  REQUIRE_CODE(opened, kNeedsNewer);
  CHECK(opened.status().ToString() ==
        "/kv: metadata is kept by engine \"oak\", which this version does not know");
}

TEST_CASE("The table has a test's engine as long as its MetadataEngineForTest exists") {
  testing::RegisterLogEngine();
  MetadataEngine engine = testing::kLogEngine;
  engine.name = "elm";
  {
    const MetadataEngineForTest registered(engine);
    CHECK(EngineOf("elm").name == "elm");
  }
  REQUIRE_CODE(FindMetadataEngine("elm"), kNeedsNewer);
}

TEST_CASE("Metadata is created once, and opened only if it exists") {
  FOR_EACH_ENGINE(engine) {
    SimEnv env;
    CHECK_FALSE(*EngineOf(engine).has_files(env, kPath));
    REQUIRE_CODE(OpenKvStore(env, engine, At(Mode::kOpen)), kNotFound);
    REQUIRE_CODE(OpenKvStore(env, engine, At(Mode::kReadOnly)), kNotFound);
    {
      const auto store = OpenKvStore(env, engine, At(Mode::kCreate));
      REQUIRE_OK(store);
      REQUIRE_OK((*store)->Write({Put("a", "1")}));
    }
    REQUIRE_CODE(OpenKvStore(env, engine, At(Mode::kCreate)), kAlreadyExists);
    CHECK(*EngineOf(engine).has_files(env, kPath));
    for (const Mode mode : {Mode::kOpen, Mode::kReadOnly}) {
      const auto store = OpenKvStore(env, engine, At(mode));
      REQUIRE_OK(store);
      CHECK(Read(**store, "a") == "1");
    }
  }
}

TEST_CASE("A power cut in any call leaves whole writes, and all that were acknowledged") {
  using Unsynced = CrashPolicy::Unsynced;
  FOR_EACH_ENGINE(engine) {
    const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kPrefix, Unsynced::kSubset);
    bool cut = true;
    for (uint64_t nth = testing::FirstCall(static_cast<uint64_t>(unsynced)); cut;
         nth += testing::CallStep()) {
      CAPTURE(nth);
      Device device(engine);
      device.env.CutAtCall(nth);
      uint64_t acknowledged = 0;
      uint64_t attempted = 0;
      if (const auto store = OpenKvStore(device.env, engine, At(Mode::kOpen)); store.ok()) {
        while (attempted < 12) {
          if (!(*store)->Write(Numbered(++attempted)).ok()) break;
          acknowledged = attempted;
        }
        if (acknowledged == attempted) (*store)->CloseCleanly().IgnoreError("the power is off");
      }
      cut = !device.env.PowerIsOn();
      device.env.Reboot({.unsynced = unsynced, .seed = nth});
      for (const Mode mode : {Mode::kReadOnly, Mode::kOpen}) {
        const Entries entries = All(*device.Open(mode));
        REQUIRE((entries == AfterWrite(acknowledged) || entries == AfterWrite(attempted)));
      }
      // What the recovery returned is durable.
      const Entries recovered = All(*device.Open());
      device.env.PowerCut();
      const auto store = device.Open();
      REQUIRE(All(*store) == recovered);
      REQUIRE_OK(store->Write(Numbered(50)));
      REQUIRE(nth < 1000);
    }
  }
}

TEST_CASE("Read-only metadata shows all writes after a crash, and writes nothing") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    const bool closed = GENERATE(false, true);
    {
      const auto store = device.Open();
      for (uint64_t n = 1; n <= 5; ++n) REQUIRE_OK(store->Write(Numbered(n)));
      if (closed) REQUIRE_OK(store->CloseCleanly());
      device.env.PowerCut();
    }
    const uint64_t calls = device.env.Calls(SimCall::kMutating);
    {
      const auto store = device.Open(Mode::kReadOnly);
      CHECK(All(*store) == AfterWrite(5));
      CHECK((store->LoggedChanges() == 0) == closed);
      REQUIRE_CODE(store->Write({Put("a", "b")}), kReadOnly);
      REQUIRE_OK(store->VerifyChecksums());
      REQUIRE_OK(store->CloseCleanly());
    }
    CHECK(device.env.Calls(SimCall::kMutating) == calls);
  }
}

TEST_CASE("A write on a full disk may be repeated, and succeeds when there is room again") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    const auto store = device.Open();
    REQUIRE_OK(store->Write(Numbered(1)));
    const auto space = device.env.GetDiskSpace("/");
    REQUIRE_OK(space);
    device.env.SetCapacity(space->total_bytes - space->available_bytes + 8192);
    const std::vector<Mutation> large = {Put("large", std::string(1u << 20, 'y'))};
    for (int i = 0; i < 3; ++i) REQUIRE_CODE(store->Write(large), kNoSpace);
    CHECK(All(*store) == AfterWrite(1));
    device.env.SetCapacity(SimEnv::kUnlimited);
    REQUIRE_OK(store->Write(Numbered(2)));
    REQUIRE_OK(store->Write(large));
    CHECK(Read(*store, "large").size() == 1u << 20);
    device.env.PowerCut();
    const auto reopened = device.Open();
    CHECK(Read(*reopened, "a") == "2");
    CHECK(Read(*reopened, "large").size() == 1u << 20);
    REQUIRE_OK(reopened->CloseCleanly());
  }
}

TEST_CASE("After a failed sync no write reaches readers, and all later writes are refused") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    {
      const auto store = device.Open();
      REQUIRE_OK(store->Write(Numbered(1)));
      device.env.FailCall({.calls = SimCall::kSync, .sticky = true});
      REQUIRE_CODE(store->Write(Numbered(2)), kIoError);
      device.env.ClearFaults();
      CHECK_FALSE(store->Write(Numbered(3)).ok());
      CHECK(All(*store) == AfterWrite(1));
    }
    device.env.PowerCut();
    const Entries entries = All(*device.Open());
    CHECK((entries == AfterWrite(1) || entries == AfterWrite(2)));
  }
}

TEST_CASE("Undamaged metadata has no tolerated damage, and is salvaged whole") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    const bool closed = GENERATE(false, true);
    {
      const auto store = device.Open();
      for (uint64_t n = 1; n <= 5; ++n) REQUIRE_OK(store->Write(Numbered(n)));
      if (closed) REQUIRE_OK(store->CloseCleanly());
      device.env.PowerCut();
    }
    const MetadataEngine& row = EngineOf(engine);
    const uint64_t calls = device.env.Calls(SimCall::kMutating);
    REQUIRE_OK(row.find_tolerated_damage(device.env, At(Mode::kReadOnly),
                                         [](const Status& damage) { FAIL(damage.ToString()); }));
    Entries entries;
    const auto salvage = row.salvage(device.env, At(Mode::kReadOnly),
                                     [&](std::string_view key, std::string_view value) {
                                       entries.emplace_back(key, value);
                                       return Status::Ok();
                                     });
    REQUIRE_OK(salvage);
    CHECK(salvage->losses.empty());
    CHECK(salvage->entries == entries.size());
    CHECK(entries == AfterWrite(5));
    CHECK(device.env.Calls(SimCall::kMutating) == calls);
    REQUIRE_CODE(row.salvage(device.env, At(Mode::kReadOnly),
                             [](std::string_view, std::string_view) {
                               return Status(StatusCode::kInterrupted, "enough");
                             }),
                 kInterrupted);
  }
}

TEST_CASE("A flipped bit in any file of metadata is noticed, or changes no entry") {
  FOR_EACH_ENGINE(engine) {
    Device device(engine);
    {
      const auto store = device.Open();
      for (uint64_t n = 1; n <= 40; ++n) REQUIRE_OK(store->Write(Numbered(n)));
      REQUIRE_OK(store->CloseCleanly());
    }
    const auto files = device.env.ListDirectory(kPath);
    REQUIRE_OK(files);
    uint64_t noticed = 0;
    for (const DirectoryEntry& entry : *files) {
      const std::string path = JoinPath(kPath, entry.name);
      const auto info = device.env.GetFileInfo(path);
      REQUIRE_OK(info);
      for (uint64_t offset = 5; offset < info->size; offset += 1 + info->size / 7) {
        CAPTURE(path, offset);
        const auto env = device.env.Fork();
        testing::Flip(*env, path, offset);
        const auto store = OpenKvStore(*env, engine, At(Mode::kReadOnly));
        if (!store.ok() || !(*store)->VerifyChecksums().ok()) {
          ++noticed;
        } else {
          CHECK(All(**store) == AfterWrite(40));
        }
        REQUIRE_OK(EngineOf(engine).salvage(
            *env, At(Mode::kReadOnly),
            [](std::string_view, std::string_view) { return Status::Ok(); }));
      }
    }
    CHECK(noticed > 4);
  }
}

TEST_CASE("Salvage of missing metadata finds nothing, and is no error") {
  FOR_EACH_ENGINE(engine) {
    SimEnv env;
    const auto salvage =
        EngineOf(engine).salvage(env, At(Mode::kReadOnly), [](std::string_view, std::string_view) {
          return Status(StatusCode::kInterrupted, "there is no entry");
        });
    REQUIRE_OK(salvage);
    CHECK(salvage->entries == 0);
  }
}

}  // namespace siltfs
