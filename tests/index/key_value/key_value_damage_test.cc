// What is lost or rotten as a whole: nothing of it may pass for a store that was always empty, or
// for one that never heard of what was put last.
#include "key_value_history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct DamageFixture {
  DamageFixture() {
    options.index.partition_bits = 0;
    options.index.bucket_bits = 6;
    options.index.max_log_pages = 4096;
    REQUIRE_OK(env.CreateDirectory(options.directory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<KeyValueStore> Open() {
    auto store = KeyValueStore::Open(env, options);
    REQUIRE_OK(store);
    return std::move(*store);
  }
  void PutAll(KeyValueStore& store, uint64_t keys, uint8_t byte, size_t size) {
    for (uint64_t i = 0; i < keys; ++i) {
      REQUIRE_OK(store.Put(AsBytes(KeyOf(i)), Bytes(size, byte)));
    }
  }
  std::vector<std::string> Files(const std::string& directory) {
    std::vector<std::string> paths;
    auto entries = env.ListDirectory(directory);
    REQUIRE_OK(entries);
    for (const auto& entry : *entries) paths.push_back(directory + "/" + entry.name);
    return paths;
  }

  SimEnv env;
  KeyValueOptions options = TinyKeyValueOptions(64);
};

}  // namespace

TEST_CASE("a store whose own file is gone is damaged, not new") {
  DamageFixture fixture;
  const size_t size = GENERATE(5, 500);
  auto store = fixture.Open();
  fixture.PutAll(*store, 100, 1, size);
  REQUIRE_OK(store->Close());
  store.reset();
  REQUIRE_OK(fixture.env.RemoveFile("/store/store"));
  const uint64_t before = fixture.env.Calls(SimCall::kMutating);
  fixture.options.read_only = GENERATE(false, true);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto opened = KeyValueStore::Open(fixture.env, fixture.options);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.status().Is(StatusCode::kCorruption));
  }
  CHECK(fixture.env.Calls(SimCall::kMutating) == before);
}

TEST_CASE("a store whose index is gone is damaged, not empty") {
  DamageFixture fixture;
  auto store = fixture.Open();
  fixture.PutAll(*store, 100, 1, 500);
  REQUIRE_OK(store->Close());
  store.reset();
  for (const std::string& path : fixture.Files("/store/index")) {
    REQUIRE_OK(fixture.env.RemoveFile(path));
  }
  fixture.options.read_only = GENERATE(false, true);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto opened = KeyValueStore::Open(fixture.env, fixture.options);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.status().Is(StatusCode::kCorruption));
  }
  fixture.options.index.accept_lost_entries = true;
  CHECK(KeyValueStore::Open(fixture.env, fixture.options).ok());
}

}  // namespace siltfs::testing
