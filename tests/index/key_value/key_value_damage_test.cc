// Missing or damaged files: the store must not look new, and must not look as if the last values
// had never been put.
#include <algorithm>

#include "index/flash/slot.h"
#include "key_value_fixture.h"

namespace siltfs::testing {
namespace {

struct DamageFixture : KeyValueFixture {
  DamageFixture() : KeyValueFixture(64) {
    options.index.partition_bits = 0;
    options.index.bucket_bits = 6;
    options.index.max_log_pages = 4096;
    options.index.hash_store_share = 0.145;  // so that some HashStores remain
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
};

}  // namespace

TEST_CASE("a store without its own file is damaged, not new") {
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

TEST_CASE("a store without its index is damaged, not empty") {
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

TEST_CASE("no older value replaces one in a damaged page of a log") {
  DamageFixture fixture;
  const bool deleted = GENERATE(false, true);
  // With 0 other keys the old values are in the active log, with 250 in HashStores.
  const uint64_t others = GENERATE(0, 250);
  auto store = fixture.Open();
  constexpr uint64_t kKeys = 20;
  fixture.PutAll(*store, kKeys, 1, 5);
  REQUIRE_OK(store->Flush());
  for (uint64_t i = 1000; i < 1000 + others; ++i) {
    REQUIRE_OK(store->Put(AsBytes(KeyOf(i)), Bytes(5, 1)));
  }
  // Flush, so that the new values get a page of their own in the newest log.
  REQUIRE_OK(store->Flush());
  for (uint64_t i = 0; i < kKeys; ++i) {
    if (deleted) {
      REQUIRE_OK(store->Delete(AsBytes(KeyOf(i))));
    } else {
      REQUIRE_OK(store->Put(AsBytes(KeyOf(i)), Bytes(5, 2)));
    }
  }
  REQUIRE_OK(store->Flush());
  for (const std::string& path : fixture.Files("/store/index")) {
    if (!path.ends_with(".log")) continue;
    auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    auto size = (*file)->Size();
    REQUIRE_OK(size);
    if (*size < kPageSize) continue;
    REQUIRE_OK((*file)->Write(*size - kPageSize + 40, Bytes(10, 0xee)));
  }
  std::vector<std::string> keys;
  std::vector<ByteView> views;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(KeyOf(i));
  for (const std::string& key : keys) views.push_back(AsBytes(key));
  for (const ByteView view : views) {
    const auto got = store->Get(view);
    REQUIRE_FALSE(got.ok());
    REQUIRE(got.status().Is(StatusCode::kCorruption));
  }
  std::vector<Value> values(kKeys);
  CHECK(store->Get(views, values).Is(StatusCode::kCorruption));
  CHECK(std::ranges::none_of(values, [](const Value& value) { return value.has_value(); }));
  // New puts succeed, and lookups find them.
  REQUIRE_OK(store->Put(views[3], Bytes(5, 3)));
  auto got = store->Get(views[3]);
  REQUIRE_OK(got);
  CHECK(*got == Bytes(5, 3));
}

TEST_CASE("after a merge that reads a damaged page, puts fail, and no damaged file is removed") {
  DamageFixture fixture;
  auto store = fixture.Open();
  fixture.PutAll(*store, 1000, 1, 5);
  REQUIRE_OK(store->Close());
  store.reset();
  std::vector<std::string> stores;
  for (const std::string& path : fixture.Files("/store/index")) {
    if (!path.ends_with(".hash")) continue;
    stores.push_back(path);
    auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(100, Bytes(10, 0xee)));
    REQUIRE_OK((*file)->Sync());
  }
  REQUIRE_FALSE(stores.empty());
  const auto put_more = [&] {
    for (uint64_t i = 2000; i < 4000; ++i) {
      Status put = store->Put(AsBytes(KeyOf(i)), Bytes(5, 2));
      if (!put.ok()) return put;
    }
    return Status::Ok();
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    store = fixture.Open();
    REQUIRE(put_more().Is(StatusCode::kCorruption));
    const std::vector<std::string> there = fixture.Files("/store/index");
    for (const std::string& path : stores) {
      REQUIRE(std::ranges::find(there, path) != there.end());
    }
    store.reset();
  }
  fixture.options.index.accept_lost_entries = true;
  store = fixture.Open();
  REQUIRE_OK(put_more());
  REQUIRE_OK(store->Close());
}

TEST_CASE("a damaged segment stays, and its lost values are reported") {
  DamageFixture fixture;
  auto store = fixture.Open();
  constexpr uint64_t kKeys = 30;
  fixture.PutAll(*store, kKeys, 1, 3000);
  REQUIRE_OK(store->Close());
  const std::string path = "/store/values/segments/000000/00000001.seg";
  auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(1000, Bytes(10, 0xee)));
  store = fixture.Open();
  const auto result = store->Reclaim({.most_in_use = 1});
  REQUIRE_OK(result);
  CHECK(result->segments_damaged == 1);
  CHECK(result->segments_removed > 1);
  REQUIRE_OK(fixture.env.GetFileInfo(path));
  uint64_t lost = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    const auto got = store->Get(AsBytes(KeyOf(i)));
    if (got.ok()) {
      CHECK(*got == Bytes(3000, 1));
    } else {
      CHECK(got.status().Is(StatusCode::kCorruption));
      ++lost;
    }
  }
  CHECK(lost == 1);
}

}  // namespace siltfs::testing
