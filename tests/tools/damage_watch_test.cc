#include "tools/siltfs/damage_watch.h"

#include <spdlog/sinks/null_sink.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/thread_annotations.h"
#include "tests/support/catch.h"
#include "tests/support/memory_maintenance.h"

namespace siltfs::testing {
namespace {

StoreHealth Found(uint64_t blocks, uint64_t footers = 0, const std::string& failure = "") {
  StoreHealth health;
  health.found_damaged_blocks = blocks;
  if (footers > 0) health.last_scrub = LastScrub{.damaged_footers = footers};
  health.read_only_cause = failure;
  return health;
}

// A store whose health the test sets.
class SickStore final : public MemoryMaintenance {
 public:
  SickStore() : MemoryMaintenance([] { return FileSystemStats(); }) {}
  StoreHealth GetHealth() override {
    const MutexLock lock(mutex_);
    return health_;
  }
  void Set(StoreHealth health) {
    const MutexLock lock(mutex_);
    health_ = std::move(health);
  }

 private:
  Mutex mutex_;
  StoreHealth health_ SILTFS_GUARDED_BY(mutex_);
};

// Keeps the events, and starts a program for each.
class Events {
 public:
  explicit Events(std::string program, std::vector<std::string> arguments = {})
      : program_(std::move(program)), arguments_(std::move(arguments)) {}
  ~Events() {
    for (StartedProgram& program : started_) program.Kill();
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  Result<StartedProgram> Start(const HookEvent& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
    auto started = StartedProgram::Start(
        {.path = program_, .arguments = arguments_, .environment = CurrentEnvironment()});
    if (started.ok() && !arguments_.empty()) started_.push_back(*started);
    return started;
  }
  std::vector<HookEvent> Await(size_t count) {
    const MutexLock lock(mutex_);
    while (events_.size() < count) changed_.Wait(mutex_);
    return events_;
  }
  std::vector<HookEvent> All() { return Await(0); }

 private:
  const std::string program_;
  const std::vector<std::string> arguments_;
  std::vector<StartedProgram> started_;  // with arguments: they do not end by themselves
  Mutex mutex_;
  CondVar changed_;
  std::vector<HookEvent> events_ SILTFS_GUARDED_BY(mutex_);
};

DamageWatch::Options OptionsOf(Events& events) {
  return {.store = "/srv/store",
          .mountpoint = "/mnt",
          .log = std::make_shared<spdlog::logger>("test",
                                                  std::make_shared<spdlog::sinks::null_sink_mt>()),
          .start = [&events](const HookEvent& event) { return events.Start(event); },
          .has_hooks = [] { return true; },
          .together = std::chrono::milliseconds(1),
          .interval = std::chrono::hours(1)};
}

TEST_CASE("each finding starts the hooks once, with what was found") {
  SickStore store;
  Events events("true");
  DamageWatch watch(OptionsOf(events));
  store.Set(Found(2));  // while the store was opened
  watch.Note("the first sentence");
  watch.Note("the second sentence");
  watch.Begin(store);
  const HookEvent first = events.Await(1)[0];
  CHECK(first.event == "damage");
  CHECK(first.store == "/srv/store");
  CHECK(first.mountpoint == "/mnt");
  CHECK(first.count == 2);
  CHECK(first.message == "2 more blocks are damaged; the first message is: the first sentence");
  watch.Note("nothing new");
  store.Set(Found(3, 0, "the disk has failed"));
  watch.Note("one more");
  const HookEvent second = events.Await(2)[1];
  CHECK(second.count == 1);
  watch.Note("a failure");
  const HookEvent third = events.Await(3)[2];
  CHECK(third.event == "failure");
  CHECK(third.message == "the disk has failed");
  watch.End();
  const Status failure(StatusCode::kIoError, "it was told");
  watch.ReportFailure(failure);
  CHECK_FALSE(failure.ok());
  CHECK(events.All().size() == 3);
}

TEST_CASE("damaged footers are reported if a scrub finds more than the last one") {
  SickStore store;
  Events events("true");
  store.Set(Found(0, 1));
  DamageWatch watch(OptionsOf(events));
  watch.Begin(store);
  store.Set(Found(0, 3));
  watch.Note("a footer");
  CHECK(events.Await(1)[0].message == "the last scrub found 3 damaged footers of segments");
  watch.End();
  CHECK(events.All().size() == 1);
}

TEST_CASE("the end reports what was found at last, even if hooks still run") {
  SickStore store;
  Events events("sleep", {"1000"});
  DamageWatch::Options options = OptionsOf(events);
  {
    DamageWatch watch(std::move(options));
    store.Set(Found(1));
    watch.Begin(store);
    CHECK(events.Await(1).size() == 1);
    store.Set(Found(2));
    watch.Note("while hooks run");
  }
  REQUIRE(events.All().size() == 2);
}

}  // namespace
}  // namespace siltfs::testing
