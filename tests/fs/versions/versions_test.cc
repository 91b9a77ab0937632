// Versions of records: keys, the values that snapshots show, and what their deletion frees. A model
// keeps a copy of all records for each snapshot.
#include <map>
#include <set>

#include "fs/records/schema.h"
#include "fs/versions/shown_values.h"
#include "fs/versions/snapshot_view.h"
#include "fs/versions/version_release.h"
#include "store/base/random.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/support/catch.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

using Records = std::map<std::string, std::string>;

std::string RandomName(Random& random) {
  static constexpr char kBytes[] = {'\0', '\x01', '\xFF', 'a', 'b'};
  std::string name;
  const size_t length = 1 + random.Below(3);
  for (size_t i = 0; i < length; ++i) name.push_back(kBytes[random.Below(std::size(kBytes))]);
  return name;
}

// A store with snapshots, and a model of it.
class Store {
 public:
  explicit Store(uint64_t seed) : random_(seed), kv_(OpenMemoryKvStore(disk_)) {}

  // A commit with a few changes of few inodes, some of them new.
  void Change() {
    std::map<std::string, std::optional<std::string>> changes;
    for (size_t i = 1 + random_.Below(5); i-- > 0;) {
      if (random_.OneIn(4)) ++next_inode_;
      std::optional<std::string> value;
      if (!random_.OneIn(3)) value = std::to_string(++values_);
      changes[RandomKey()] = value;
    }
    std::vector<std::string_view> changed;
    std::vector<Mutation> mutations;
    for (const auto& [key, value] : changes) {
      changed.push_back(key);
      mutations.push_back({key, value});
      if (value) {
        now_[key] = *value;
      } else {
        now_.erase(key);
      }
    }
    const VersionKeeper keeper(Bounds());
    REQUIRE_OK(keeper.Keep(*kv_->Snapshot(), changed, mutations));
    REQUIRE_OK(kv_->Write(mutations));
  }
  void TakeSnapshot() {
    ++newest_;
    snapshots_[newest_] = {{newest_, next_inode_}, now_};
  }
  void DeleteSnapshot(bool interrupted) {
    if (snapshots_.empty()) return;
    auto deleted = snapshots_.begin();
    std::advance(deleted, static_cast<ptrdiff_t>(random_.Below(snapshots_.size())));
    const SnapshotNumber number = deleted->first;
    snapshots_.erase(deleted);
    const size_t most = 1 + random_.Below(3);
    for (int attempt = interrupted ? 0 : 1; attempt < 2; ++attempt) {
      VersionRelease release(number, kLiveLineage, Bounds(), newest_);
      for (bool more = true; more;) {
        std::vector<Mutation> batch;
        const auto next = release.Next(*kv_->Snapshot(), most, batch);
        REQUIRE_OK(next);
        REQUIRE_OK(kv_->Write(batch));
        more = *next && (attempt == 1 || !random_.OneIn(2));
      }
    }
  }

  void RequireAllShown() {
    for (const auto& [number, snapshot] : snapshots_) {
      const auto view = MakeSnapshotView(kv_->Snapshot(), snapshot.bounds);
      RequireShown(*view, snapshot.records);
    }
  }
  // Each value is visited once, with the first and the last snapshot that show it.
  void RequireShownValues() {
    struct Shown {
      std::string key;
      std::set<size_t> places;
    };
    std::map<std::string, Shown> expected;  // by value; no two records have the same value
    size_t place = 0;
    const auto expect = [&](const Records& records) {
      for (const auto& [key, value] : records) {
        expected[value].key = key;
        expected[value].places.insert(place);
      }
      ++place;
    };
    for (const auto& [number, snapshot] : snapshots_) expect(snapshot.records);
    expect(now_);
    const std::vector<SnapshotBounds> bounds = Bounds();
    for (const Table table :
         {Table::kInode, Table::kDirectoryEntry, Table::kXattr, Table::kOverlay}) {
      const KeyRange range = RangeOf(table);
      REQUIRE_OK(ForEachShownValue(
          *kv_->Snapshot(), range.begin, range.end, bounds,
          [&](std::string_view key, std::string_view value, const ShownBy& shown) {
            const auto found = expected.find(std::string(value));
            REQUIRE(found != expected.end());
            const std::set<size_t>& places = found->second.places;
            const bool right = found->second.key == key && shown.first == *places.begin() &&
                               shown.last == *places.rbegin() &&
                               places.size() == shown.last - shown.first + 1;
            REQUIRE(right);
            expected.erase(found);
            return Status::Ok();
          }));
    }
    REQUIRE(expected.empty());
  }
  // Each version serves a snapshot, and is listed.
  void RequireNoUselessVersions() {
    std::set<std::pair<std::string, SnapshotNumber>> versions;
    std::map<std::string, SnapshotNumber> listed;
    for (const auto& [key, value] : disk_.contents()) {
      if (const auto parts = ParseVersionKey(key)) versions.emplace(parts->key, parts->snapshot);
      const auto list = ParseVersionListKey(key);
      if (!list) continue;
      const auto serves = snapshots_.upper_bound(list->born);
      REQUIRE(serves != snapshots_.end());
      REQUIRE(serves->first <= list->snapshot);
      listed[VersionKey(list->key, list->snapshot)] = list->born;
    }
    REQUIRE(versions.size() == listed.size());
    for (const auto& [key, snapshot] : versions)
      REQUIRE(listed.contains(VersionKey(key, snapshot)));
    if (snapshots_.empty()) REQUIRE(versions.empty());
  }
  size_t snapshots() const { return snapshots_.size(); }

 private:
  struct Snapshot {
    SnapshotBounds bounds;
    Records records;
  };

  std::string RandomKey() {
    const uint64_t inode = 1 + random_.Below(next_inode_ - 1);
    switch (random_.Below(4)) {
      case 0:
        return InodeKey(inode);
      case 1:
        return DirectoryEntryKey(inode, RandomName(random_));
      case 2:
        return XattrKey(inode, RandomName(random_));
      default:
        return OverlayKey(inode, random_.Below(3));
    }
  }
  std::vector<SnapshotBounds> Bounds() const {
    std::vector<SnapshotBounds> bounds;
    for (const auto& [number, snapshot] : snapshots_) bounds.push_back(snapshot.bounds);
    return bounds;
  }
  void RequireShown(const KvSnapshot& view, const Records& records) {
    const auto iterator = view.NewIterator();
    iterator->Seek({});
    for (const auto& [key, value] : records) {
      REQUIRE(iterator->Valid());
      REQUIRE(iterator->key() == key);
      REQUIRE(iterator->value() == value);
      iterator->Next();
    }
    REQUIRE_OK(iterator->status());
    REQUIRE_FALSE(iterator->Valid());
    const std::string begin = RandomKey();
    const std::string end = RandomKey();
    const auto part = view.NewIteratorBelow(end);
    part->Seek(begin);
    for (auto at = records.lower_bound(begin); at != records.end() && at->first < end; ++at) {
      REQUIRE(part->Valid());
      REQUIRE(part->key() == at->first);
      part->Next();
    }
    REQUIRE_FALSE(part->Valid());
    for (int i = 0; i < 20; ++i) {
      const std::string key = RandomKey();
      const auto got = view.Get(key);
      REQUIRE_OK(got);
      const auto wanted = records.find(key);
      REQUIRE(got->has_value() == (wanted != records.end()));
      if (*got) REQUIRE(**got == wanted->second);
    }
  }

  Random random_;
  MemoryDisk disk_;
  const std::unique_ptr<KvStore> kv_;
  Records now_;
  std::map<SnapshotNumber, Snapshot> snapshots_;
  SnapshotNumber newest_ = 0;
  uint64_t next_inode_ = 3;
  uint64_t values_ = 0;
};

}  // namespace

TEST_CASE("keys of versions sort by key, and then from the newest to the oldest snapshot") {
  Random random(1);
  std::set<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.insert(DirectoryEntryKey(random.Below(3), RandomName(random)));
  std::string last;
  std::string end;
  for (const std::string& key : keys) {
    CHECK(FirstVersionKey(key) > last);
    CHECK(FirstVersionKey(key) >= end);
    end = EndOfVersionKeys(key);
    for (const SnapshotNumber snapshot : {UINT64_MAX, uint64_t{256}, uint64_t{1}}) {
      const std::string version = VersionKey(key, snapshot);
      REQUIRE(version > last);
      REQUIRE(version >= FirstVersionKey(key));
      REQUIRE(version < EndOfVersionKeys(key));
      REQUIRE(version < EndOfVersionKeys());
      const auto parts = ParseVersionKey(version);
      REQUIRE(parts);
      REQUIRE(parts->key == key);
      REQUIRE(parts->snapshot == snapshot);
      last = version;
      for (size_t length = 0; length < version.size(); ++length)
        REQUIRE_FALSE(ParseVersionKey(version.substr(0, length)));
    }
  }
}

TEST_CASE("each snapshot shows the records as they were, whatever is changed and deleted later") {
  const auto seed = GENERATE(range(1, TestScale() == kWholeScale ? 9 : 3));
  Store store(static_cast<uint64_t>(seed));
  Random random(static_cast<uint64_t>(seed) + 100);
  for (int step = 0; step < 300; ++step) {
    const uint64_t kind = random.Below(10);
    if (kind < 6) {
      store.Change();
    } else if (kind < 8) {
      store.TakeSnapshot();
    } else if (seed % 2 == 0) {  // in the other stores, keys get many versions
      store.DeleteSnapshot(random.OneIn(2));
      store.RequireNoUselessVersions();
    }
    if (step % 5 == 0) store.RequireAllShown();
    if (step % 5 == 0) store.RequireShownValues();
  }
  store.RequireAllShown();
  CHECK(store.snapshots() > 0);
  while (store.snapshots() > 0) {
    store.DeleteSnapshot(/*interrupted=*/false);
    store.RequireAllShown();
    store.RequireShownValues();
  }
  store.RequireNoUselessVersions();
}

TEST_CASE("a lookup in a snapshot reads no versions of other keys") {
  MemoryDisk disk;
  const auto kv = OpenMemoryKvStore(disk);
  REQUIRE_OK(kv->Write({{InodeKey(5), "five"}, {VersionKey(InodeKey(6), 9), "malformed"}}));
  const auto view = MakeSnapshotView(kv->Snapshot(), {2, 100});
  const auto value = view->Get(InodeKey(5));
  REQUIRE_OK(value);
  CHECK(*value == "five");
  CHECK_FALSE(view->Get(InodeKey(6)).ok());
}

TEST_CASE("a walk of a snapshot reads no versions behind the next present record") {
  MemoryDisk disk;
  const auto kv = OpenMemoryKvStore(disk);
  // There may be very many versions for other snapshots there.
  REQUIRE_OK(kv->Write({{InodeKey(5), "five"},
                        {InodeKey(6), "six"},
                        {InodeKey(8), "eight"},
                        {VersionKey(InodeKey(7), 9), "malformed"}}));
  const auto view = MakeSnapshotView(kv->Snapshot(), {2, 100});
  const auto iterator = view->NewIterator();
  for (const uint64_t from : {4, 5}) {
    iterator->Seek(InodeKey(from));
    REQUIRE_OK(iterator->status());
    REQUIRE(iterator->Valid());
    CHECK(iterator->value() == "five");
  }
  iterator->Next();
  REQUIRE(iterator->Valid());
  CHECK(iterator->value() == "six");
  iterator->Next();
  CHECK_FALSE(iterator->Valid());
  REQUIRE_CODE(iterator->status(), kCorruption);
}

TEST_CASE("a commit reads no versions of other keys") {
  MemoryDisk disk;
  const auto kv = OpenMemoryKvStore(disk);
  const std::string key = InodeKey(5);
  // RocksDB passes removed keys as it passes this one, so a search must not go beyond its key.
  REQUIRE_OK(kv->Write({{key, "five"}, {VersionKey(InodeKey(6), 9) + "malformed", ""}}));
  const std::vector<std::string_view> changed{key};
  std::vector<Mutation> kept;
  REQUIRE_OK(VersionKeeper({{3, 10}}).Keep(*kv->Snapshot(), changed, kept));
  CHECK(kept.size() == 2);
}

TEST_CASE("a store without snapshots keeps no versions, and new inodes need none") {
  MemoryDisk disk;
  const auto kv = OpenMemoryKvStore(disk);
  const std::string old_key = InodeKey(5);
  const std::string new_key = InodeKey(10);
  REQUIRE_OK(kv->Write({{old_key, "old"}}));
  const std::vector<std::string_view> changed{old_key, new_key, kGarbageKey};
  std::vector<Mutation> kept;
  REQUIRE_OK(VersionKeeper().Keep(*kv->Snapshot(), changed, kept));
  CHECK(kept.empty());
  REQUIRE_OK(VersionKeeper({{3, 10}}).Keep(*kv->Snapshot(), changed, kept));
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].key == VersionKey(old_key, 3));
  CHECK(kept[0].value == EncodeVersion("old"));
  CHECK(kept[1].key == VersionListKey(3, 0, old_key));
}

TEST_CASE("a malformed version is an error, and no wrong record") {
  MemoryDisk disk;
  const auto kv = OpenMemoryKvStore(disk);
  const std::string key = InodeKey(5);
  std::string version_key = VersionKey(key, 2);
  std::string version = EncodeVersion("old");
  SECTION("its key") { version_key.pop_back(); }
  SECTION("its value") { version[0] = 2; }
  SECTION("no value") { version.clear(); }
  REQUIRE_OK(kv->Write({{key, "new"}, {version_key, version}}));
  const auto view = MakeSnapshotView(kv->Snapshot(), {1, 10});
  REQUIRE_CODE(view->Get(key), kCorruption);
  const auto iterator = view->NewIterator();
  iterator->Seek({});
  CHECK_FALSE(iterator->Valid());
  CHECK(iterator->status().Is(StatusCode::kCorruption));
}

}  // namespace siltfs::testing
