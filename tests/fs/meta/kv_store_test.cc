// The contract of KvStore, tested on every implementation.
#include "fs/kv/kv_store.h"

#include <functional>
#include <map>

#include "fs/kv/ascending_reads.h"
#include "fs/meta/open_kv_store.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/sim_env.h"
#include "tests/fs/meta/log_kv_store.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

using testing::Entries;
using testing::Put;
using testing::Read;
using testing::Remove;

// Keeps the data of a store while the store is closed.
class Home {
 public:
  virtual ~Home() = default;
  virtual std::unique_ptr<KvStore> Open() = 0;
};

class MemoryHome final : public Home {
 public:
  std::unique_ptr<KvStore> Open() override { return testing::OpenMemoryKvStore(disk_); }

 private:
  testing::MemoryDisk disk_;
};

class RocksDbHome final : public Home {
 public:
  std::unique_ptr<KvStore> Open() override {
    KvStoreOptions options;
    options.path = directory_ / "kv";
    options.mode = made_ ? KvStoreOptions::Mode::kOpen : KvStoreOptions::Mode::kCreate;
    auto store = OpenRocksDbStore(*env_, options);
    REQUIRE_OK(store);
    made_ = true;
    return std::move(store).value();
  }

 private:
  const std::unique_ptr<Env> env_ = NewPosixEnv();
  testing::TemporaryDirectory directory_;
  bool made_ = false;
};

// The home of one metadata engine's store, on a simulated device. Every Open except the first cuts
// the power before it opens the store.
class EngineHome final : public Home {
 public:
  explicit EngineHome(std::string engine) : engine_(std::move(engine)) {}

  std::unique_ptr<KvStore> Open() override {
    if (made_) env_.PowerCut();
    KvStoreOptions options{.path = "/kv", .ledger_path = "/kv.ledger"};
    if (!made_) options.mode = KvStoreOptions::Mode::kCreate;
    auto store = OpenKvStore(env_, engine_, options);
    REQUIRE_OK(store);
    REQUIRE_OK(env_.SyncDirectory("/"));
    made_ = true;
    return std::move(store).value();
  }

 private:
  const std::string engine_;
  SimEnv env_;
  bool made_ = false;
};

struct Engine {
  std::string name;
  std::function<std::unique_ptr<Home>()> make;
};

const std::vector<Engine>& Engines() {
  static const std::vector<Engine> engines = [] {
    std::vector<Engine> all = {
        {"memory", [] { return std::make_unique<MemoryHome>(); }},
        {"RocksDB on this machine", [] { return std::make_unique<RocksDbHome>(); }},
    };
    testing::RegisterLogEngine();
    for (const MetadataEngine* row : MetadataEngines()) {
      const std::string name(row->name);
      all.push_back({name, [name] { return std::make_unique<EngineHome>(name); }});
    }
    return all;
  }();
  return engines;
}

Entries Walk(const KvSnapshot& snapshot, std::string_view begin, std::string_view end) {
  Entries entries;
  const auto iterator = snapshot.NewIteratorBelow(end);
  for (iterator->Seek(begin); iterator->Valid(); iterator->Next()) {
    entries.emplace_back(iterator->key(), iterator->value());
  }
  REQUIRE_OK(iterator->status());
  return entries;
}

#define FOR_EACH_ENGINE(engine) \
  for (const Engine& engine : Engines()) DYNAMIC_SECTION("on " << engine.name)

TEST_CASE("A write's mutations take effect in their order") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    REQUIRE_OK(store->Write(
        {Put("a", "1"), Put("a", "2"), Put("b", "1"), Remove("b"), Remove("c"), Put("c", "3")}));
    REQUIRE(Read(*store, "a") == "2");
    REQUIRE(Read(*store, "b") == "(none)");
    REQUIRE(Read(*store, "c") == "3");
  }
}

TEST_CASE("Keys and values are any bytes, and an empty value is a value") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    const std::string key("\0\xff\0k", 4);
    REQUIRE_OK(store->Write({Put(key, std::string("\0v\xff", 3)), Put("empty", "")}));
    REQUIRE(Read(*store, key) == std::string("\0v\xff", 3));
    REQUIRE(Read(*store, "empty").empty());
    REQUIRE(Read(*store, std::string("\0\xff", 2)) == "(none)");
  }
}

TEST_CASE("A snapshot never sees later writes") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    REQUIRE_OK(store->Write({Put("a", "old"), Put("b", "old")}));
    const auto snapshot = store->Snapshot();
    REQUIRE_OK(store->Write({Put("a", "new"), Remove("b"), Put("c", "new")}));
    REQUIRE(Read(*snapshot, "a") == "old");
    REQUIRE(Read(*snapshot, "c") == "(none)");
    REQUIRE(Walk(*snapshot, "", "") == Entries{{"a", "old"}, {"b", "old"}});
    REQUIRE(Walk(*store->Snapshot(), "", "") == Entries{{"a", "new"}, {"c", "new"}});
  }
}

TEST_CASE("An iterator starts at the first key not below and ends before its end") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    REQUIRE_OK(store->Write({Put("a", "1"), Put("c", "2"), Put("e", "3"), Put("f", "4")}));
    const auto snapshot = store->Snapshot();
    REQUIRE(Walk(*snapshot, "b", "f") == Entries{{"c", "2"}, {"e", "3"}});
    REQUIRE(Walk(*snapshot, "c", "d") == Entries{{"c", "2"}});
    REQUIRE(Walk(*snapshot, "g", "").empty());
    const auto iterator = snapshot->NewIterator();
    iterator->Seek("d");
    REQUIRE(iterator->Valid());
    REQUIRE(iterator->key() == "e");
    iterator->Seek("");
    REQUIRE(iterator->key() == "a");
  }
}

TEST_CASE("The last key of a range is found, if the range has one") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    REQUIRE_OK(store->Write({Put("a", "1"), Put("c", "2"), Put("e", "3"), Put("f", "4")}));
    const auto snapshot = store->Snapshot();
    REQUIRE_OK(store->Write({Put("d", "later"), Remove("c")}));
    const auto last = [&](std::string_view begin, std::string_view end) {
      const auto found = snapshot->LastIn(begin, end);
      REQUIRE_OK(found);
      return *found ? (*found)->key + (*found)->value : std::string("none");
    };
    REQUIRE(last("", "") == "f4");
    REQUIRE(last("b", "e") == "c2");
    REQUIRE(last("c", "d") == "c2");
    REQUIRE(last("d", "e") == "none");
    REQUIRE(last("", "a") == "none");
    REQUIRE(last("g", "") == "none");
  }
}

// Each answer must be that of the snapshot.
void CheckReads(const KvSnapshot& snapshot, AscendingReads& reads, const std::string& key,
                const std::string& end) {
  const auto value = reads.Get(key);
  REQUIRE_OK(value);
  REQUIRE(*value == *snapshot.Get(key));
  const auto first = reads.FirstIn(key, end);
  REQUIRE_OK(first);
  const auto wanted = snapshot.FirstIn(key, end);
  REQUIRE(first->has_value() == wanted->has_value());
  if (*first) {
    REQUIRE((*first)->key == (*wanted)->key);
    REQUIRE((*first)->value == (*wanted)->value);
  }
}

TEST_CASE("Reads in ascending order find the same as single ones") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    const auto store = home->Open();
    Random random(4);
    const auto key = [](uint64_t number) {
      std::string text = std::to_string(number);
      return std::string(6 - text.size(), '0') + text;
    };
    // Long gaps of removed keys make an iterator give up.
    std::vector<Mutation> added;
    std::vector<Mutation> removed;
    for (uint64_t i = 0; i < 3000; ++i) {
      added.push_back(Put(key(i), key(i)));
      if (i % 1000 >= 100 && !random.OneIn(400)) removed.push_back(Remove(key(i)));
    }
    REQUIRE_OK(store->Write(added));
    REQUIRE_OK(store->Write(removed));
    const auto snapshot = store->Snapshot();
    for (const uint64_t most_steps : {1, 3, 30, 700}) {
      AscendingReads reads(*snapshot);
      for (uint64_t i = 0; i < 3200; i += 1 + random.Below(most_steps))
        CheckReads(*snapshot, reads, key(i), key(i + random.Below(20)));
    }
    AscendingReads reads(*snapshot);
    for (int i = 0; i < 500; ++i) CheckReads(*snapshot, reads, key(random.Below(3200)), {});
  }
}

TEST_CASE("Random writes, with crashes and clean closes between, read back like an ordered map") {
  FOR_EACH_ENGINE(engine) {
    const auto home = engine.make();
    auto store = home->Open();
    std::map<std::string, std::string> model;
    Random random(42);
    for (int round = 0; round < 400; ++round) {
      std::vector<Mutation> batch;
      for (uint64_t i = random.Below(20); i > 0; --i) {
        Mutation mutation = Put("key" + std::to_string(random.Below(500)),
                                std::string(random.Below(300), static_cast<char>('a' + i)));
        if (random.OneIn(3)) mutation.value.reset();
        if (mutation.value) {
          model[mutation.key] = *mutation.value;
        } else {
          model.erase(mutation.key);
        }
        batch.push_back(std::move(mutation));
      }
      REQUIRE_OK(store->Write(batch));
      if (random.OneIn(50)) {
        if (random.OneIn(2)) REQUIRE_OK(store->CloseCleanly());
        store.reset();
        store = home->Open();
      }
      if (random.OneIn(20)) {
        REQUIRE(Walk(*store->Snapshot(), "", "") == Entries(model.begin(), model.end()));
      }
      const std::string key = "key" + std::to_string(random.Below(500));
      REQUIRE(Read(*store, key) == (model.count(key) ? model[key] : "(none)"));
    }
    REQUIRE(Walk(*store->Snapshot(), "", "") == Entries(model.begin(), model.end()));
  }
}

}  // namespace
}  // namespace siltfs
