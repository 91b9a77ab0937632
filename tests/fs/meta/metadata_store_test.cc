// Groups and commits: numbers, sharing, back-pressure, counters.
#include "fs/meta/metadata_store.h"

#include <atomic>
#include <functional>
#include <thread>

#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Apply;
using testing::FakeParticipant;
using testing::MemoryDisk;
using testing::OpenMemoryKvStore;
using testing::OpenOn;
using testing::Put;
using testing::Read;
using testing::Remove;
using testing::Unhurried;
using testing::UsualOptions;

MetadataOptions SmallGroups() {
  MetadataOptions options = Unhurried();
  options.group_bytes = 2000;
  return options;
}

std::string Filler() { return std::string(3000, 'x'); }  // fills a small group at once

TEST_CASE("An applied mutation is read at once and is on the disk only after its commit") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  const uint64_t number = Apply(*store, {Put("k", "v")});
  REQUIRE(number == 1);
  REQUIRE(Read(*store, "k") == "v");
  REQUIRE(disk.contents().empty());
  REQUIRE(store->last_commit() == 0);
  REQUIRE_OK(store->Commit(number));
  REQUIRE(store->last_commit() == 1);
  REQUIRE(disk.contents().at("k") == "v");
  REQUIRE(Read(*store, "k") == "v");
  REQUIRE(Apply(*store, {Remove("k")}) == 2);
  REQUIRE(Read(*store, "k") == "(none)");
  REQUIRE(disk.contents().count("k") == 1);
  REQUIRE_OK(store->CommitAll());
  REQUIRE(disk.contents().count("k") == 0);
}

TEST_CASE("Without an Apply, CommitAll writes nothing and Commit of a future number is refused") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  REQUIRE_OK(store->CommitAll());
  REQUIRE_OK(store->Commit(0));
  REQUIRE_CODE(store->Commit(1), kInvalidArgument);
  REQUIRE_CODE(store->Commit(2), kInvalidArgument);
  REQUIRE(disk.writes() == 0);
  Apply(*store, {Put("k", "v")});
  REQUIRE_CODE(store->Commit(2), kInvalidArgument);
  REQUIRE_OK(store->CommitAll());
  REQUIRE_OK(store->CommitAll());
  REQUIRE_OK(store->Commit(1));
  REQUIRE(disk.writes() == 1);
}

TEST_CASE("Commit numbers continue after those of the last mount") {
  MemoryDisk disk;
  {
    const auto store = OpenOn(disk);
    Apply(*store, {Put("k", "v")});
    REQUIRE_OK(store->CommitAll());
    Apply(*store, {Put("k", "w")});
    REQUIRE_OK(store->Close());
  }
  REQUIRE(disk.closed_cleanly());
  const auto store = OpenOn(disk);
  REQUIRE(store->last_commit() == 2);
  REQUIRE(Read(*store, "k") == "w");
  REQUIRE(Apply(*store, {Put("k", "x")}) == 3);
}

TEST_CASE("Without Close only uncommitted operations are lost") {
  MemoryDisk disk;
  {
    const auto store = OpenOn(disk);
    Apply(*store, {Put("k", "v")});
    REQUIRE_OK(store->CommitAll());
    Apply(*store, {Put("k", "lost")});
  }
  REQUIRE_FALSE(disk.closed_cleanly());
  REQUIRE(Read(*OpenOn(disk), "k") == "v");
}

TEST_CASE("Counters are the sum of all differences; the disk has those of the last commit") {
  MemoryDisk disk;
  {
    const auto store = OpenOn(disk);
    Apply(*store, {Put("a", "1")}, {5, -2});
    Apply(*store, {Put("b", "1")}, {1, 0, 7});
    REQUIRE(store->counters() == Counters{6, -2, 7});
    REQUIRE_OK(store->CommitAll());
    Apply(*store, {Put("third", "1")}, {100});
    REQUIRE(store->counters() == Counters{106, -2, 7});
  }
  {
    const auto store = OpenOn(disk);
    REQUIRE(store->counters() == Counters{6, -2, 7});
    Apply(*store, {Put("third", "1")}, {0, 0, 0, 0, 0, 0, 0, 1});
    REQUIRE_OK(store->Close());
  }
  REQUIRE(OpenOn(disk)->counters() == Counters{6, -2, 7, 0, 0, 0, 0, 1});
}

TEST_CASE("A commit number or counters of a wrong length, or missing ones, are corruption") {
  const std::string number("\1\0\0\0\0\0\0\0", 8);
  const auto [commit, counters] =
      GENERATE_COPY(table<std::optional<std::string>, std::optional<std::string>>({
          {"short", std::string(64, '\0')},
          {number + "x", std::string(64, '\0')},
          {number, std::string(63, '\0')},
          {number, std::string(65, '\0')},
          {number, std::nullopt},
      }));
  MemoryDisk disk;
  REQUIRE_OK(OpenMemoryKvStore(disk)->Write(
      {{std::string(kCommitNumberKey), commit}, {std::string(kCountersKey), counters}}));
  REQUIRE_CODE(MetadataStore::Open(OpenMemoryKvStore(disk), Unhurried()), kCorruption);
}

TEST_CASE("Callers cannot write the store's own keys") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  REQUIRE_CODE(store->Apply({Put("k", "v"), Put(std::string(kCommitNumberKey), "9")}),
               kInvalidArgument);
  REQUIRE_CODE(store->WriteThrough({Remove(std::string(kCountersKey))}), kInvalidArgument);
  REQUIRE(Read(*store, "k") == "(none)");
}

TEST_CASE("Invalid options are refused") {
  MemoryDisk disk;
  MetadataOptions no_room = UsualOptions();
  no_room.group_bytes = 0;
  REQUIRE_CODE(MetadataStore::Open(OpenMemoryKvStore(disk), no_room), kInvalidArgument);
  MetadataOptions backwards = UsualOptions();
  backwards.commit_interval = std::chrono::milliseconds(-1);
  REQUIRE_CODE(MetadataStore::Open(OpenMemoryKvStore(disk), backwards), kInvalidArgument);
  MetadataOptions forever = UsualOptions();
  forever.commit_interval = std::chrono::milliseconds::max();
  const auto store = OpenOn(disk, forever);
  Apply(*store, {Put("k", "v")});
  REQUIRE_OK(store->CommitAll());
}

TEST_CASE("The participant is called before and after the batch, and adds to it") {
  MemoryDisk disk;
  FakeParticipant participant;
  participant.AddToEachBatch(Put("segment 1", "length"));
  const auto store = OpenOn(disk, Unhurried(), &participant);
  participant.Hold();
  Apply(*store, {Put("k", "v")});
  std::thread committer([&] { store->CommitAll().IgnoreError("looked at below"); });
  participant.WaitForPrepared(1);
  REQUIRE(disk.writes() == 0);
  REQUIRE(participant.done().empty());
  participant.Release();
  committer.join();
  REQUIRE(disk.writes() == 1);
  REQUIRE(disk.contents().at("segment 1") == "length");
  REQUIRE(participant.prepared() == std::vector<uint64_t>{1});
  REQUIRE(participant.done() == std::vector<uint64_t>{1});
}

TEST_CASE("The participant may use the store while it prepares") {
  class Curious final : public CommitParticipant {
   public:
    Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) override {
      last_before = store->last_commit();
      SILTFS_RETURN_IF_ERROR(store->WriteThrough({Put("range", std::to_string(number))}));
      SILTFS_ASSIGN_OR_RETURN(const auto value, store->Get("k"));
      extra.push_back(Put("seen", value.value_or("")));
      extra.push_back(Put("sum", std::to_string(store->counters()[0])));
      return Status::Ok();
    }
    void CommitDone(uint64_t /*number*/) override { last_after = store->last_commit(); }
    MetadataStore* store = nullptr;
    uint64_t last_before = 99;
    uint64_t last_after = 99;
  } participant;
  MemoryDisk disk;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  participant.store = store.get();
  Apply(*store, {Put("k", "v")}, {3});
  REQUIRE_OK(store->CommitAll());
  REQUIRE(participant.last_before == 0);
  REQUIRE(participant.last_after == 1);
  REQUIRE(Read(*store, "seen") == "v");
  REQUIRE(Read(*store, "sum") == "3");
  REQUIRE(Read(*store, "range") == "1");
}

TEST_CASE("While a commit writes, operations apply, read and pin without waiting") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("k", "first")});
  disk.HoldWrites();
  std::thread committer([&] { store->CommitAll().IgnoreError("looked at below"); });
  // Apply until the number increases: then the first group is closed.
  while (Apply(*store, {Put("k", "second")}) == 1) std::this_thread::yield();
  REQUIRE(Read(*store, "k") == "second");
  REQUIRE(testing::ScanAll(store->Pin()).size() == 1);
  REQUIRE_OK(store->WaitForRoom());
  REQUIRE(store->last_commit() == 0);
  REQUIRE(disk.contents().empty());
  disk.ReleaseWrites();
  committer.join();
  REQUIRE(disk.contents().count("k") == 1);
}

TEST_CASE("Concurrent Commit calls share one write") {
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  Apply(*store, {Put("first", "1")});
  participant.Hold();
  std::thread first([&] { store->CommitAll().IgnoreError("looked at below"); });
  participant.WaitForPrepared(1);
  // All these changes join the second group while the first one is being committed.
  constexpr int kThreads = 8;
  std::atomic<int> applied{0};
  std::atomic<int> committed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Result<uint64_t> number = store->Apply({Put("key " + std::to_string(i), "v")});
      ++applied;
      if (number.ok() && *number == 2 && store->Commit(*number).ok()) ++committed;
    });
  }
  while (applied < kThreads) std::this_thread::yield();
  participant.Release();
  first.join();
  for (std::thread& thread : threads) thread.join();
  REQUIRE(committed == kThreads);
  REQUIRE(disk.writes() == 2);
  REQUIRE(store->last_commit() == 2);
}

TEST_CASE("Operations without a Commit call share a commit, too") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  constexpr uint64_t kOperations = 100;
  for (uint64_t i = 0; i < kOperations; ++i) {
    REQUIRE(Apply(*store, {Put("key " + std::to_string(i), "v")}) == 1);
  }
  REQUIRE_OK(store->CommitAll());
  REQUIRE(disk.writes() == 1);
  REQUIRE(store->last_commit() == 1);
}

TEST_CASE("A full group is committed without a request") {
  MemoryDisk disk;
  const auto store = OpenOn(disk, SmallGroups());
  Apply(*store, {Put("k", Filler())});
  disk.WaitForWrites(1);
  REQUIRE(disk.contents().count("k") == 1);
}

TEST_CASE("A group is committed after the interval, and an idle store writes nothing") {
  MemoryDisk disk;
  MetadataOptions options = UsualOptions();
  options.commit_interval = std::chrono::milliseconds(1);
  const auto store = OpenOn(disk, options);
  for (uint64_t i = 1; i <= 3; ++i) {
    Apply(*store, {Put("k", std::to_string(i))});
    disk.WaitForWrites(i);
    // CommitAll waits for the commit thread. If the commit thread had made another commit before,
    // there would be more writes.
    REQUIRE_OK(store->CommitAll());
    REQUIRE(disk.writes() == i);
  }
}

// A clock that moves only on request. The store waits in real time, so a test moves the clock and
// waits for the effect.
class HandClock {
 public:
  explicit HandClock(MetadataOptions& options) {
    options.clock = [this] { return std::chrono::nanoseconds(now_.load()); };
  }
  void Advance(std::chrono::nanoseconds by) { now_ += by.count(); }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

TEST_CASE("Changes that pause are committed before the interval is over, once") {
  using std::chrono::milliseconds;
  MetadataOptions options = Unhurried();
  options.quiet_interval = milliseconds(20);
  HandClock clock(options);
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, options, &participant);
  for (uint64_t i = 1; i <= 3; ++i) {
    // The changes take longer than a pause in total, but there is no pause between two of them.
    for (int change = 0; change < 10; ++change) {
      Apply(*store, {Put("k" + std::to_string(change), std::to_string(i))});
      clock.Advance(milliseconds(19));
    }
    REQUIRE(store->last_commit() == i - 1);
    clock.Advance(milliseconds(1));
    disk.WaitForWrites(i);
    REQUIRE_OK(store->CommitAll());  // the commit has ended: its duration counts
    // Nothing was applied since then, so no further commit is due at any time.
    clock.Advance(std::chrono::hours(1));
    REQUIRE_OK(store->CommitAll());
    REQUIRE(disk.writes() == i);
  }
  REQUIRE(participant.done() == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE("Without a quiet interval a pause commits nothing") {
  MetadataOptions options = UsualOptions();
  options.commit_interval = std::chrono::hours(1);
  HandClock clock(options);
  MemoryDisk disk;
  const auto store = OpenOn(disk, options);
  Apply(*store, {Put("k", "v")});
  clock.Advance(std::chrono::minutes(59));
  // The commit thread reads the clock when it gets work. If it committed after the pause, this
  // commit would be the second one.
  REQUIRE_OK(store->Commit(Apply(*store, {Put("al", "v")})));
  REQUIRE(disk.writes() == 1);
}

TEST_CASE("WaitForRoom returns at once while the other group can take operations") {
  MemoryDisk disk;
  const auto store = OpenOn(disk, SmallGroups());
  disk.HoldWrites();
  Apply(*store, {Put("a", Filler())});
  REQUIRE_OK(store->WaitForRoom());
  REQUIRE(Apply(*store, {Put("b", "v")}) == 2);
  REQUIRE_OK(store->WaitForRoom());
  disk.ReleaseWrites();
}

TEST_CASE("With both groups full an operation waits until the older one is durable") {
  MemoryDisk disk;
  const auto store = OpenOn(disk, SmallGroups());
  disk.HoldWrites();
  Apply(*store, {Put("a", Filler())});
  REQUIRE_OK(store->WaitForRoom());
  Apply(*store, {Put("b", Filler())});
  std::atomic<bool> started{false};
  uint64_t durable_then = 0;
  std::thread operation([&] {
    started = true;
    const Status room = store->WaitForRoom();
    if (room.ok()) durable_then = store->last_commit();
  });
  while (!started) std::this_thread::yield();
  disk.ReleaseWrites();
  operation.join();
  REQUIRE(durable_then >= 1);
}

TEST_CASE("A write-through is durable and visible at once, without the groups") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("k", "v")});
  REQUIRE_OK(store->WriteThrough({Put("range", "1000")}));
  REQUIRE(disk.contents() == std::map<std::string, std::string>{{"range", "1000"}});
  REQUIRE(Read(*store, "range") == "1000");
  REQUIRE(Read(store->Pin(), "range") == "1000");
  REQUIRE_OK(store->CommitAll());
  REQUIRE(Read(store->Pin(), "range") == "1000");
  REQUIRE(Read(store->Pin(), "k") == "v");
}

TEST_CASE("A load's records are durable and visible after Load, and what is left without it, too") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  const std::map<std::string, std::string> records = {{"l1", "a"}, {"l2", "b"}};
  for (const bool loaded : {false, true}) {
    const std::string last = loaded ? "l2" : "l1";
    auto load = store->NewLoad();
    REQUIRE_OK(load);
    REQUIRE_OK((*load)->Add({{last, records.at(last)}}));
    if (loaded) {
      REQUIRE_OK((*load)->Load());
      REQUIRE(Read(*store, last) == records.at(last));
    }
    load->reset();
    REQUIRE(disk.contents().at(last) == records.at(last));
    REQUIRE(store->CommittedSnapshot()->Get(last)->value() == records.at(last));
  }
  const auto refused = store->NewLoad();
  REQUIRE_OK(refused);
  REQUIRE_CODE((*refused)->Add({{kCountersKey, "x"}}), kInvalidArgument);
  disk.FailAllWrites({StatusCode::kIoError});
  REQUIRE_CODE(store->WriteThrough({Put("range", "1")}), kIoError);
  REQUIRE_CODE(store->NewLoad(), kReadOnly);
}

TEST_CASE("Concurrent write-throughs and commits never undo a value that a reader has seen") {
  MemoryDisk disk;
  MetadataOptions options = Unhurried();
  options.group_bytes = 1000;
  const auto store = OpenOn(disk, options);
  std::atomic<bool> stop{false};
  std::atomic<bool> went_back{false};
  std::thread reader([&] {
    int last_range = 0;
    int last_key = 0;
    while (!stop) {
      const View view = store->Pin();
      for (auto [key, last] : {std::pair("range", &last_range), std::pair("key", &last_key)}) {
        const Result<std::optional<std::string>> value = view.Get(key);
        const int now = value.ok() ? std::stoi(value->value_or("0")) : -1;
        if (now < *last) went_back = true;
        *last = now;
      }
    }
  });
  std::thread ranger([&] {
    for (int i = 1; i <= 2000 && store->WriteThrough({Put("range", std::to_string(i))}).ok(); ++i) {
    }
  });
  for (int i = 1; i <= 5000; ++i) {
    REQUIRE_OK(store->WaitForRoom());
    Apply(*store, {Put("key", std::to_string(i)), Put("other " + std::to_string(i), "v")});
  }
  ranger.join();
  stop = true;
  reader.join();
  REQUIRE_FALSE(went_back);
  REQUIRE(Read(*store, "range") == "2000");
}

TEST_CASE("Opened read-only, a store answers reads and refuses everything else") {
  MemoryDisk disk;
  {
    const auto store = OpenOn(disk);
    Apply(*store, {Put("k", "v")}, {4});
    REQUIRE_OK(store->Close());
  }
  const uint64_t writes = disk.writes();
  MetadataOptions options = UsualOptions();
  options.read_only = true;
  const auto store = OpenOn(disk, options);
  REQUIRE(Read(*store, "k") == "v");
  REQUIRE(store->counters()[0] == 4);
  REQUIRE_CODE(store->Apply({Put("k", "w")}), kReadOnly);
  REQUIRE_CODE(store->WaitForRoom(), kReadOnly);
  REQUIRE_CODE(store->WriteThrough({Put("k", "w")}), kReadOnly);
  REQUIRE_OK(store->CommitAll());
  REQUIRE_OK(store->Commit(1));
  REQUIRE_OK(store->failure());
  REQUIRE_OK(store->Close());
  REQUIRE(disk.writes() == writes);
}

// Defers one mutation for each commit, and runs a test's function when the commit's group has
// closed.
class OneEach final : public DeferredChanges {
 public:
  void Keep(uint64_t number, Mutation mutation) { kept_.emplace_back(number, std::move(mutation)); }
  Status FlushDeferred(uint64_t number) override {
    told_.push_back(number);
    if (meanwhile_) meanwhile_();
    for (auto& [commit, mutation] : kept_) {
      if (commit != number) continue;
      Counters differences{};
      differences[0] = 1;
      SILTFS_RETURN_IF_ERROR(store_->ApplyTo(commit, {mutation}, differences));
    }
    std::erase_if(kept_, [number](const auto& each) { return each.first == number; });
    return Status::Ok();
  }

  MetadataStore* store_ = nullptr;
  std::vector<uint64_t> told_;
  std::function<void()> meanwhile_;

 private:
  std::vector<std::pair<uint64_t, Mutation>> kept_;
};

TEST_CASE("An operation that joined a commit is in it, even if its mutations come later") {
  MemoryDisk disk;
  OneEach late;
  auto store = OpenOn(disk);
  late.store_ = store.get();
  store->SetDeferredChanges(&late);
  const auto number = store->Join();
  REQUIRE_OK(number);
  late.Keep(*number, Put("added late", "v"));
  REQUIRE_OK(store->Commit(*number));
  REQUIRE(late.told_ == std::vector<uint64_t>{*number});
  REQUIRE(disk.contents().at("added late") == "v");
  REQUIRE(store->counters()[0] == 1);
  REQUIRE_CODE(store->ApplyTo(*number, {Put("later", "v")}, {}), kInvalidArgument);
  REQUIRE(disk.contents().count("later") == 0);
  store.reset();
  REQUIRE(OpenOn(disk)->counters()[0] == 1);
}

TEST_CASE("A closed group takes no changes after its deferred changes") {
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  const auto number = store->Join();
  REQUIRE_OK(number);
  participant.Hold();
  std::thread committer([&] { REQUIRE_OK(store->Commit(*number)); });
  participant.WaitForPrepared(1);
  const Status refused = store->ApplyTo(*number, {Put("later", "v")}, {});
  participant.Release();
  committer.join();
  REQUIRE_CODE(refused, kInvalidArgument);
}

TEST_CASE("An operation that joins while a closed group gets its deferred changes is in the next") {
  MemoryDisk disk;
  OneEach late;
  const auto store = OpenOn(disk);
  late.store_ = store.get();
  store->SetDeferredChanges(&late);
  const auto number = store->Join();
  late.Keep(*number, Put("added late", "v"));
  uint64_t next = 0;
  late.meanwhile_ = [&] {
    if (next != 0) return;
    next = *store->Join();
    REQUIRE_OK(store->ApplyTo(next, {Put("next", "v")}, {}));
    REQUIRE_CODE(store->ApplyTo(next + 1, {Put("none", "v")}, {}), kInvalidArgument);
  };
  REQUIRE_OK(store->Commit(*number));
  REQUIRE(next == *number + 1);
  REQUIRE(disk.contents().count("added late") == 1);
  REQUIRE(disk.contents().count("next") == 0);
  REQUIRE_OK(store->CommitAll());
  REQUIRE(disk.contents().count("next") == 1);
  REQUIRE(disk.contents().count("none") == 0);
}

TEST_CASE("An operation that joined and was applied before its group closed is seen at once") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  const auto number = store->Join();
  REQUIRE_OK(store->ApplyTo(*number, {Put("k", "v")}, {}));
  REQUIRE(Read(*store, "k") == "v");
  REQUIRE_OK(store->Commit(*number));
  REQUIRE(disk.contents().at("k") == "v");
}

TEST_CASE("A commit that was retried after a full disk has its deferred changes") {
  MemoryDisk disk;
  FakeParticipant participant;
  OneEach late;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  late.store_ = store.get();
  store->SetDeferredChanges(&late);
  const auto number = store->Join();
  late.Keep(*number, Put("added late", "v"));
  participant.FailWith(StatusCode::kNoSpace);
  REQUIRE_CODE(store->Commit(*number), kNoSpace);
  participant.FailWith(StatusCode::kOk);
  REQUIRE_OK(store->Commit(*number));
  REQUIRE(disk.contents().at("added late") == "v");
  REQUIRE(store->counters()[0] == 1);
}

}  // namespace
}  // namespace siltfs
