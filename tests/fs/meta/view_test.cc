// Reads the metadata as of a pinned moment, merged from three sources.
#include <atomic>
#include <map>
#include <thread>

#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Apply;
using testing::Entries;
using testing::FakeParticipant;
using testing::MemoryDisk;
using testing::OpenOn;
using testing::Put;
using testing::Read;
using testing::Remove;
using testing::ScanAll;
using testing::Unhurried;

// A store with data in the key-value store, a group that is held in its commit, and an open group.
class ThreeLayers {
 public:
  ThreeLayers() { store_ = OpenOn(disk_, Unhurried(), &participant_); }
  ~ThreeLayers() {
    participant_.Release();
    if (committer_.joinable()) committer_.join();
  }

  // Moves all applied data to the key-value store.
  void ToStore() { REQUIRE_OK(store_->CommitAll()); }
  // Moves the data that was applied after ToStore to the committing group. The group's commit waits
  // until Finish.
  void ToCommitting() {
    participant_.Hold();
    committer_ = std::thread([this] { committed_ = store_->CommitAll().ok(); });
    participant_.WaitForPrepared(participant_.done().size() + 1);
  }
  void Finish() {
    participant_.Release();
    committer_.join();
    REQUIRE(committed_);
  }
  MetadataStore& store() { return *store_; }

 private:
  MemoryDisk disk_;
  FakeParticipant participant_;
  std::unique_ptr<MetadataStore> store_;
  std::thread committer_;
  bool committed_ = false;
};

TEST_CASE("The newest of open group, committing group and store wins, tombstones included") {
  ThreeLayers layers;
  MetadataStore& store = layers.store();
  Apply(store, {Put("kA", "stored"), Put("kB", "stored"), Put("kC", "stored"), Put("kD", "stored"),
                Put("kE", "stored"), Put("kF", "stored")});
  layers.ToStore();
  Apply(store, {Put("kB", "committing"), Remove("kC"), Put("kD", "committing"), Remove("kE"),
                Put("kG", "committing"), Remove("none")});
  layers.ToCommitting();
  Apply(store, {Put("kD", "open"), Put("kE", "open"), Remove("kF"), Remove("kG"), Put("kH", "open"),
                Remove("none too")});

  const Entries expected = {
      {"kA", "stored"}, {"kB", "committing"}, {"kD", "open"}, {"kE", "open"}, {"kH", "open"}};
  const View view = store.Pin();
  REQUIRE(ScanAll(view) == expected);
  REQUIRE(ScanAll(view, "kB", "kE") == Entries{{"kB", "committing"}, {"kD", "open"}});
  REQUIRE(ScanAll(view, "kE", "kE").empty());
  REQUIRE(ScanAll(view, "kF", "kB").empty());
  const std::map<std::string, std::string> model(expected.begin(), expected.end());
  for (const char* key : {"kA", "kB", "kC", "kD", "kE", "kF", "kG", "kH", "none"}) {
    INFO(key);
    REQUIRE(Read(view, key) == (model.count(key) ? model.at(key) : "(none)"));
    REQUIRE(Read(store, key) == Read(view, key));
  }
}

TEST_CASE("A view is unchanged while its groups are closed, committed and followed by others") {
  ThreeLayers layers;
  MetadataStore& store = layers.store();
  Apply(store, {Put("kA", "1"), Put("kB", "1"), Put("kC", "1")});
  layers.ToStore();
  Apply(store, {Put("kB", "2")});
  layers.ToCommitting();
  Apply(store, {Remove("kC"), Put("kD", "2")});
  const View view = store.Pin();
  const Entries expected = {{"kA", "1"}, {"kB", "2"}, {"kD", "2"}};
  REQUIRE(ScanAll(view) == expected);

  layers.Finish();
  REQUIRE(ScanAll(view) == expected);
  REQUIRE_OK(store.CommitAll());  // closes the group that is open in `view`
  Apply(store, {Put("kA", "9"), Remove("kB"), Put("kC", "9"), Remove("kD")});
  REQUIRE(ScanAll(view) == expected);
  REQUIRE_OK(store.CommitAll());
  REQUIRE(ScanAll(view) == expected);
  REQUIRE(Read(view, "kC") == "(none)");
  REQUIRE(ScanAll(store.Pin()) == Entries{{"kA", "9"}, {"kC", "9"}});
}

TEST_CASE("A scan stops when the visitor returns false") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("kA", "1"), Put("kB", "1"), Put("kC", "1")});
  std::string seen;
  REQUIRE_OK(store->Pin().Scan("", "", [&](std::string_view key, std::string_view) {
    seen += key;
    return key != "kB";
  }));
  REQUIRE(seen == "kAkB");
}

TEST_CASE("Scans over random layers read like one ordered map, over batch borders too") {
  const uint64_t seed = GENERATE(1, 2, 3, 4, 5, 6);
  ThreeLayers layers;
  MetadataStore& store = layers.store();
  std::map<std::string, std::string> model;
  Random random(seed);
  auto fill = [&](int applies) {
    for (int i = 0; i < applies; ++i) {
      std::vector<Mutation> mutations;
      for (uint64_t n = random.Below(8); n > 0; --n) {
        Mutation mutation = Put("k" + std::to_string(random.Below(900)), std::to_string(i));
        // Sometimes exceed a batch's bytes.
        if (random.OneIn(20)) mutation.value->resize(40000, 'x');
        if (random.OneIn(3)) mutation.value.reset();
        if (mutation.value) {
          model[mutation.key] = *mutation.value;
        } else {
          model.erase(mutation.key);
        }
        mutations.push_back(std::move(mutation));
      }
      Apply(store, std::move(mutations));
    }
  };
  fill(150);
  layers.ToStore();
  fill(150);
  layers.ToCommitting();
  fill(150);
  const View view = store.Pin();
  REQUIRE(ScanAll(view) == Entries(model.begin(), model.end()));
  for (int i = 0; i < 50; ++i) {
    std::string begin = "k" + std::to_string(random.Below(900));
    std::string end = "k" + std::to_string(random.Below(900));
    if (end < begin) std::swap(begin, end);
    if (random.OneIn(4)) end.clear();
    const auto to = end.empty() ? model.end() : model.lower_bound(end);
    REQUIRE(ScanAll(view, begin, end) == Entries(model.lower_bound(begin), to));
  }
}

TEST_CASE("A scan visits untouched keys exactly once during concurrent Applies") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  auto key = [](int i) { return "k" + std::to_string(10000 + i); };
  // Even keys stay. While the scan runs, odd keys between and around them are put and removed.
  std::vector<std::string> kept;
  for (int i = 0; i < 1000; i += 2) {
    Apply(*store, {Put(key(i), "kept"), Put(key(i + 1), "passing")});
    kept.push_back(key(i));
  }
  Random random(11);
  std::vector<std::string> seen;
  std::string last;
  const Status status = store->Pin().Scan("", "", [&](std::string_view at, std::string_view value) {
    REQUIRE(at > last);
    last = at;
    if (value == "kept") seen.emplace_back(at);
    for (int i = 0; i < 5; ++i) {
      const std::string other = key(static_cast<int>(random.Below(500)) * 2 + 1);
      Apply(*store, {random.OneIn(2) ? Remove(other) : Put(other, "passing")});
    }
    return true;
  });
  REQUIRE_OK(status);
  REQUIRE(seen == kept);
}

TEST_CASE("No reader sees half of an Apply at any moment of a commit") {
  MemoryDisk disk;
  MetadataOptions options = Unhurried();
  options.group_bytes = 60000;
  const auto store = OpenOn(disk, options);
  // Every Apply sets all these keys to one value; they fit into one batch of a scan. It also sets
  // one more key, so that groups become full.
  constexpr int kKeys = 48;
  auto apply = [&](const std::string& value) {
    std::vector<Mutation> mutations;
    for (int i = 0; i < kKeys; ++i) mutations.push_back(Put("k" + std::to_string(i), value));
    mutations.push_back(Put("other " + value, value));
    Apply(*store, std::move(mutations));
  };
  apply("0");
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::atomic<int> scans{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        const View view = store->Pin();
        for (int i = 0; i < 20; ++i, ++scans) {
          std::string first;
          int count = 0;
          const Status status = view.Scan("k", "l", [&](std::string_view, std::string_view value) {
            if (count++ == 0) first = value;
            if (value != first) ++torn;
            return true;
          });
          if (!status.ok() || count != kKeys) ++torn;
        }
      }
    });
  }
  for (int i = 1; i < 1500 || scans < 500; ++i) {
    const Status room = store->WaitForRoom();
    if (!room.ok()) break;
    apply(std::to_string(i));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  REQUIRE(torn == 0);
  REQUIRE(store->last_commit() > 0);
}

}  // namespace
}  // namespace siltfs
