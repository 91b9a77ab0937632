// The thread that ships, with callers that write, wait and close at the same time.
#include <atomic>
#include <thread>

#include "tests/fs/shipping/shipping_bench.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

void UseThread(Machine& machine) {
  machine.options.background = true;
  machine.options.interval = std::chrono::milliseconds(2);
  machine.options.object_bytes = 2000;
  machine.options.checkpoint_bytes = 20000;
  machine.options.close_timeout = std::chrono::minutes(2);
}

TEST_CASE("shipping thread: writers of several threads reach the bucket") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.wait_for_bucket = GENERATE(false, true);
  machine.options.queue_bytes = GENERATE(4000, 1u << 20);
  REQUIRE_OK(machine.Open());
  constexpr int kThreads = 4;
  constexpr int kWrites = kIsSanitized ? 50 : 200;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWrites; ++i) {
        if (!machine.Write({{fmt::format("t{}-{}", t, i), std::string(20, 'v')}}).ok()) ++failed;
        machine.shipper->lag();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  if (machine.options.wait_for_bucket) CHECK(machine.shipper->lag().commits == 0);
  const uint64_t newest = machine.shipper->Position();
  REQUIRE_OK(machine.shipper->WaitShipped(newest, std::chrono::minutes(2)));
  const Contents contents = ContentsOf(*machine.kv);
  CHECK(contents.size() == kThreads * kWrites);
  REQUIRE_OK(machine.kv->CloseCleanly());
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == contents);
}

// Calls a function after each local write, before the shipper knows of the commit.
class PausingKvStore final : public KvStore {
 public:
  PausingKvStore(std::unique_ptr<KvStore> base, const std::function<void()>& written)
      : base_(std::move(base)), written_(written) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return base_->Get(key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override { return base_->Snapshot(); }
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    SILTFS_RETURN_IF_ERROR(base_->WriteFrom(fill));
    if (written_) written_();
    return Status::Ok();
  }
  uint64_t DiskBytes() const override { return base_->DiskBytes(); }
  Status CloseCleanly() override { return base_->CloseCleanly(); }

 private:
  const std::unique_ptr<KvStore> base_;
  const std::function<void()>& written_;
};

// Counts the commits that the data of the last object covers.
class CountedData final : public ShippedData {
 public:
  void Committed(const std::vector<Mutation>& /*mutations*/) override { ++committed_; }
  Status Upload(uint32_t /*epoch*/) override {
    uploaded_ = committed_.load();
    return Status::Ok();
  }
  void Shipped(uint64_t sequence) override {
    if (uploaded_ < sequence) ++early_;
  }
  uint64_t early() const { return early_; }

 private:
  std::atomic<uint64_t> committed_ = 0;
  std::atomic<uint64_t> uploaded_ = 0;
  std::atomic<uint64_t> early_ = 0;
};

TEST_CASE("shipping thread: a checkpoint has no commit that the shipper does not know yet") {
  MemoryObjectStore objects;
  CountedData data;
  std::function<void()> written;
  Machine machine(objects, 1);
  machine.data = &data;
  machine.make_kv = [&](MemoryDisk& disk) {
    return std::make_unique<PausingKvStore>(OpenMemoryKvStore(disk), written);
  };
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  // The first checkpoint is due. Another thread begins it while a commit is on its way to the
  // shipper. The checkpoint cannot end before, so the commit waits for a while only.
  std::thread shipping;
  Status outcome;
  std::atomic<bool> shipped = false;
  written = [&] {
    if (shipping.joinable()) return;
    shipping = std::thread([&] {
      outcome = machine.shipper->Ship();
      shipped = true;
    });
    for (int i = 0; i < 200 && !shipped; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  REQUIRE_OK(machine.kv->Write({{"b", "2"}}));
  shipping.join();
  written = nullptr;
  REQUIRE_OK(outcome);
  REQUIRE_OK(machine.kv->Write({{"c", "3"}}));
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().checkpoints == 1);
  CHECK(data.early() == 0);
  machine.Crash();
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == Contents{{"a", "1"}, {"b", "2"}, {"c", "3"}});
}

TEST_CASE("shipping thread: before the store is closed, waits for a silent bucket end") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.close_timeout = std::chrono::nanoseconds(0);
  machine.options.wait_for_bucket = GENERATE(false, true);
  REQUIRE_OK(machine.Open());
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  Status outcome;
  std::thread waiting([&] {
    outcome = machine.Write({{"a", "1"}});
    if (!outcome.ok()) return;
    outcome = machine.shipper->WaitBeforeChange(machine.shipper->Position(), std::chrono::hours(1));
  });
  while (machine.shipper->lag().commits == 0) std::this_thread::yield();
  machine.shipper->BeginClosing();
  waiting.join();
  if (machine.options.wait_for_bucket) {
    REQUIRE_CODE(outcome, kIoError);
  } else {
    REQUIRE_CODE(outcome, kInterrupted);
  }
  // The local store has the commit.
  CHECK(ContentsOf(*machine.kv).contains("a"));
}

TEST_CASE("shipping thread: commits are shipped without a request, and their lag goes") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  while (machine.shipper->lag().commits > 0) std::this_thread::yield();
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == Contents{{"a", "1"}});
}

// A thread that ships only for one reason at a time: neither the interval nor the lease ends.
void UsePatientThread(Machine& machine) {
  UseThread(machine);
  machine.options.interval = std::chrono::hours(1);
  machine.options.lease = std::chrono::nanoseconds(0);
  machine.options.checkpoint_bytes = 1u << 20;
}

TEST_CASE("shipping thread: commits of the size of an object do not wait for the interval") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UsePatientThread(machine);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  REQUIRE_OK(machine.kv->Write({{"a", std::string(2 * machine.options.object_bytes, 'v')}}));
  while (machine.shipper->lag().commits > 0) std::this_thread::yield();
}

TEST_CASE("shipping thread: commits reach the bucket when the interval is over") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UsePatientThread(machine);
  machine.options.interval = std::chrono::milliseconds(2);
  REQUIRE_OK(machine.Open());
  // Otherwise the first checkpoint could have the commit.
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  while (machine.shipper->lag().commits > 0) std::this_thread::yield();
}

TEST_CASE("shipping thread: commits without a waiting caller are collected for the interval") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UsePatientThread(machine);
  machine.options.object_bytes = 1u << 20;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  const uint64_t before = machine.shipper->lag().log_objects;
  constexpr uint64_t kCommits = 20;
  for (uint64_t i = 0; i < kCommits; ++i) {
    REQUIRE_OK(machine.kv->Write({{fmt::format("k{}", i), "v"}}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread could ship it
  }
  CHECK(machine.shipper->lag().commits == kCommits);
  CHECK(machine.shipper->lag().log_objects == before);
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  CHECK(machine.shipper->lag().log_objects == before + 1);
}

TEST_CASE("shipping thread: an idle writer renews its lease") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.lease = std::chrono::milliseconds(30);
  REQUIRE_OK(machine.Open());
  const auto before = KeysBelow(objects, kLogPrefix).size();
  while (KeysBelow(objects, kLogPrefix).size() < before + 4) std::this_thread::yield();
  const auto end = ReadLogEnd(objects);
  REQUIRE_OK(end);
  CHECK(end->writer == Writer(1));
  CHECK(end->lease_end_ns == machine.env.NowNanoseconds() + machine.options.lease.count());
}

TEST_CASE("shipping thread: the idle time of a writer does not count as lag after a crash") {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.lease = std::chrono::milliseconds(30);
  machine.env.SetClock(1000 * kNsPerSecond);
  REQUIRE_OK(machine.Open());
  // Otherwise the first checkpoint could have the later time.
  while (machine.shipper->lag().commits > 0) std::this_thread::yield();
  machine.env.AdvanceClock(86'400 * kNsPerSecond);
  while (machine.shipper->lag().shipped_time_ns < 87'400 * kNsPerSecond) std::this_thread::yield();
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  const std::vector<Mutation> commit = {{"key", "value"}};
  REQUIRE_OK(machine.kv->Write(commit));
  machine.Crash();
  objects.ClearFaults();
  machine.env.AdvanceClock(7 * kNsPerSecond);
  machine.options.background = false;
  REQUIRE_OK(machine.Open());
  CHECK(machine.shipper->lag().commits > 0);
  CHECK(machine.shipper->lag().seconds == 7);
}

TEST_CASE("shipping thread: a bucket without answers neither stops local writes nor the close") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.close_timeout = std::chrono::milliseconds(50);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  for (int i = 0; i < 20; ++i) REQUIRE_OK(machine.kv->Write({{fmt::format("{}", i), "1"}}));
  const Status waited =
      machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::milliseconds(300));
  CHECK(waited.Is(StatusCode::kIoError));
  CHECK(waited.ToString().find("injected failure") != std::string::npos);
  CHECK(machine.shipper->lag().commits == 20);
  REQUIRE_OK(machine.kv->CloseCleanly());
  machine.Crash();
  objects.ClearFaults();
  machine.options.close_timeout = std::chrono::minutes(2);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->CloseCleanly());
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents.size() == 20);
}

TEST_CASE("shipping thread: a close does not wait for a request that does not end") {
  std::atomic<bool> stuck = false;
  std::atomic<int> waiting = 0;
  MemoryObjectStore objects(
      {.wait = [&](ObjectCall call, const std::string&, std::chrono::nanoseconds) {
        if (call != ObjectCall::kPut || !stuck) return;
        ++waiting;
        while (stuck) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }});
  int given_up = 0;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.given_up = [&] {
    ++given_up;
    stuck = false;
  };
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  REQUIRE_OK(machine.kv->CloseCleanly());
  CHECK(given_up == 0);
  machine.options.close_timeout = std::chrono::milliseconds(50);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
  stuck = true;
  REQUIRE_OK(machine.kv->Write({{"b", "2"}}));
  while (waiting == 0) std::this_thread::yield();
  REQUIRE_OK(machine.kv->CloseCleanly());
  CHECK(given_up == 1);
}

TEST_CASE("shipping thread: a close tells what is lost, and what waiting writes lack") {
  const bool wait_for_bucket = GENERATE(false, true);
  const bool fenced = GENERATE(false, true);
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.close_timeout = std::chrono::milliseconds(fenced ? 60000 : 20);
  machine.options.wait_for_bucket = wait_for_bucket;
  machine.options.interval = std::chrono::hours(1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->AwaitShipped());
  Machine other(objects, 2);
  if (fenced) {
    REQUIRE_OK(machine.shipper->WaitShipped(machine.shipper->Position(), std::chrono::minutes(2)));
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
  } else {
    objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  }
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  const Status closed = machine.kv->CloseCleanly();
  if (fenced) {
    REQUIRE_CODE(closed, kReadOnly);
  } else if (wait_for_bucket) {
    REQUIRE_CODE(closed, kIoError);
  } else {
    REQUIRE_OK(closed);
  }
}

TEST_CASE("shipping thread: a wait for the bucket ends when the store is closed") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.wait_for_bucket = true;
  REQUIRE_OK(machine.Open());
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  Status written;
  std::thread writer([&] { written = machine.Write({{"a", "1"}}); });
  while (machine.shipper->lag().last_error.empty()) std::this_thread::yield();
  machine.shipper->Stop();
  writer.join();
  CHECK(written.Is(StatusCode::kInterrupted));
}

TEST_CASE("shipping thread: a wait ends when the requests of the process are interrupted") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.wait_for_bucket = true;
  REQUIRE_OK(machine.Open());
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  Status written;
  std::thread writer([&] { written = machine.Write({{"a", "1"}}); });
  while (machine.shipper->lag().last_error.empty()) std::this_thread::yield();
  objects.Interrupt();
  writer.join();
  CHECK(written.Is(StatusCode::kInterrupted));
}

TEST_CASE(
    "shipping thread: openings and writes do not wait for the bucket, but AwaitShipped does") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  UseThread(machine);
  machine.options.wait_for_bucket = true;
  machine.options.interval = std::chrono::hours(1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.Write({{"a", "1"}}));
  CHECK(machine.shipper->lag().commits == 0);
  REQUIRE_OK(machine.kv->Write({{"b", "2"}}));
  CHECK(machine.shipper->lag().commits == 1);
  machine.Crash();
  // The bucket takes the object that begins the epoch, and nothing after it.
  objects.FailCall({.call = ObjectCall::kPut, .nth = 2, .permanent = true});
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"c", "3"}}));
  CHECK(machine.shipper->lag().commits >= 2);
  objects.ClearFaults();
  REQUIRE_OK(machine.kv->AwaitShipped());
  CHECK(machine.shipper->lag().commits == 0);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == Contents{{"a", "1"}, {"b", "2"}, {"c", "3"}});
}

TEST_CASE("shipping thread: a takeover ends the waits of the first writer") {
  MemoryObjectStore objects;
  Machine first(objects, 1);
  UseThread(first);
  first.options.wait_for_bucket = true;
  REQUIRE_OK(first.Open());
  REQUIRE_OK(first.Write({{"a", "0"}}));
  Machine second(objects, 2);
  REQUIRE_OK(second.Restore());
  REQUIRE_OK(second.Open());
  CHECK(first.Write({{"a", "1"}}).Is(StatusCode::kReadOnly));
  while (first.fenced == 0) std::this_thread::yield();
  CHECK(first.fenced == 1);
}

}  // namespace
}  // namespace siltfs::testing
