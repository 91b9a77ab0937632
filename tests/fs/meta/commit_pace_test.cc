// When a store commits without a request: pauses, the interval, and the limits of early commits.
#include "fs/meta/commit_pace.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Time = CommitPace::Time;

constexpr milliseconds kInterval{5000};
constexpr milliseconds kQuiet{100};

// Simulates commits of duration `cost` for changes at given times.
class Simulation {
 public:
  explicit Simulation(Time cost, Time quiet = kQuiet) : pace_(kInterval, quiet), cost_(cost) {}

  void ChangeAt(Time now) {
    RunUntil(now);
    if (!first_) first_ = now;
    last_ = now;
  }
  // Makes the commits that are due before `end`.
  void RunUntil(Time end) {
    while (first_) {
      const Time due = std::max(pace_.Due(*first_, last_), free_);
      if (due >= end) return;
      const bool early = due < *first_ + kInterval;
      commits_.push_back(due);
      waited_.push_back(due - *first_);
      free_ = due + cost_;
      pace_.Committed(due, free_, early);
      first_.reset();
    }
  }
  const std::vector<Time>& commits() const { return commits_; }
  Time longest_wait() const { return *std::max_element(waited_.begin(), waited_.end()); }

 private:
  CommitPace pace_;
  const Time cost_;
  std::optional<Time> first_;
  Time last_{};
  Time free_{};  // when the last commit ended
  std::vector<Time> commits_;
  std::vector<Time> waited_;
};

TEST_CASE("A change is committed when no other change has followed it for the quiet interval") {
  Simulation store(milliseconds(5));
  store.ChangeAt(seconds(10));
  store.ChangeAt(seconds(10) + milliseconds(80));
  store.RunUntil(seconds(1000));
  REQUIRE(store.commits() == std::vector<Time>{seconds(10) + milliseconds(180)});
}

TEST_CASE("Changes without a pause are committed once an interval") {
  Simulation store(milliseconds(5));
  for (int i = 0; i < 60'000; ++i) store.ChangeAt(milliseconds(i));
  REQUIRE(store.commits().size() == 11);
  REQUIRE(store.longest_wait() == kInterval);
}

TEST_CASE("Changes with a pause after each are committed about once a second") {
  for (const milliseconds every : {milliseconds(101), milliseconds(150), milliseconds(400)}) {
    INFO(every.count());
    Simulation store(milliseconds(5));
    for (Time now{}; now < seconds(100); now += every) store.ChangeAt(now);
    CHECK(store.commits().size() >= 90);
    CHECK(store.commits().size() <= 105);
    // No change waits longer than this.
    CHECK(store.longest_wait() <= seconds(1) + every + kQuiet);
  }
}

TEST_CASE("Up to kBurst pauses in a row cause a commit each, and time restores this allowance") {
  Simulation store(milliseconds(5));
  Time now = seconds(10);
  for (int round = 0; round < 3; ++round) {
    const size_t before = store.commits().size();
    for (int i = 0; i < CommitPace::kBurst; ++i, now += milliseconds(150)) {
      store.ChangeAt(now);
      store.RunUntil(now + milliseconds(101));
      CHECK(store.commits().size() == before + static_cast<size_t>(i) + 1);
    }
    now += seconds(10);
  }
}

TEST_CASE("After a slow commit the interval decides when the next commit begins") {
  Simulation store(seconds(2));
  for (Time now{}; now < seconds(600); now += milliseconds(150)) store.ChangeAt(now);
  // The first commit comes early. Early commits may take a tenth of the time. That is not enough
  // for another early commit before the interval is over.
  REQUIRE(store.commits().size() <= 600 / 5 + 2);
  for (size_t i = 1; i < store.commits().size(); ++i)
    REQUIRE(store.commits()[i] - store.commits()[i - 1] >= kInterval);
}

TEST_CASE("Early commits take a small part of a slow disk's time") {
  Simulation store(milliseconds(200));
  for (Time now{}; now < seconds(600); now += milliseconds(150)) store.ChangeAt(now);
  REQUIRE(store.commits().size() <= 600'000 / (200 * (CommitPace::kRest + 1)) + 2);
  REQUIRE(store.commits().size() >= 600 / 5);
}

TEST_CASE("Without a quiet interval the commit interval alone decides") {
  Simulation store(milliseconds(5), milliseconds(0));
  store.ChangeAt(seconds(1));
  store.RunUntil(seconds(100));
  REQUIRE(store.commits() == std::vector<Time>{seconds(6)});
}

TEST_CASE("A commit interval that is shorter than the quiet interval is kept") {
  const CommitPace pace(milliseconds(10), kQuiet);
  REQUIRE(pace.Due(seconds(1), seconds(1)) == seconds(1) + milliseconds(10));
}

}  // namespace
}  // namespace siltfs
