// The rules of `siltfs snapshot prune`.
#include "tools/siltfs/prune_policy.h"

#include <cstdlib>
#include <ctime>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Kept = std::vector<std::vector<std::string>>;

constexpr int64_t kHour = 3600;
constexpr int64_t kDay = 24 * kHour;
// The rules of Berlin, in a form that needs no files of time zones.
constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr int64_t kNoon = 1'700'049'600 + 2 * kDay;  // Friday, 2023-11-17 12:00 UTC

// Sets the time zone as long as it exists.
class TimeZone {
 public:
  explicit TimeZone(const char* name) {
    setenv("TZ", name, 1);
    tzset();
  }
  ~TimeZone() {
    unsetenv("TZ");
    tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;
};

std::vector<size_t> Names(const Kept& kept) {
  std::vector<size_t> at;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i].empty()) at.push_back(i);
  }
  return at;
}

TEST_CASE("the newest snapshots are kept in any order of times") {
  const std::vector<int64_t> times{kNoon - 5, kNoon, kNoon - 10, kNoon - 1};
  CHECK(Names(ChooseKept(times, {.last = 2})) == std::vector<size_t>{1, 3});
  CHECK(Names(ChooseKept(times, {.last = 9})).size() == 4);
  CHECK(Names(ChooseKept(times, {})).empty());
  CHECK(Names(ChooseKept({kNoon, kNoon, kNoon}, {.last = 1})) == std::vector<size_t>{2});
  CHECK(ChooseKept({}, {.last = 1}).empty());
}

TEST_CASE("a rule keeps the newest snapshot of each period that has one") {
  const TimeZone utc("UTC0");
  // Two a day, with a gap of three days.
  const std::vector<int64_t> times{kNoon,
                                   kNoon - kHour,
                                   kNoon - kDay,
                                   kNoon - kDay - kHour,
                                   kNoon - 5 * kDay,
                                   kNoon - 5 * kDay - kHour};
  CHECK(Names(ChooseKept(times, {.daily = 3})) == std::vector<size_t>{0, 2, 4});
  CHECK(Names(ChooseKept(times, {.daily = 2})) == std::vector<size_t>{0, 2});
  CHECK(Names(ChooseKept(times, {.hourly = 3})) == std::vector<size_t>{0, 1, 2});
  // 2023-11-12 is a Sunday, in the week before.
  CHECK(Names(ChooseKept(times, {.weekly = 5})) == std::vector<size_t>{0, 4});
  CHECK(Names(ChooseKept(times, {.monthly = 5})) == std::vector<size_t>{0});
}

TEST_CASE("the year of a week is that of its Thursday") {
  const TimeZone utc("UTC0");
  const int64_t new_year = 1'704'067'200;  // Monday, 2024-01-01
  const std::vector<int64_t> times{new_year, new_year + 6 * kDay, new_year - 1,
                                   new_year - 7 * kDay};
  CHECK(Names(ChooseKept(times, {.weekly = 9})) == std::vector<size_t>{1, 2});
  CHECK(Names(ChooseKept(times, {.yearly = 9})) == std::vector<size_t>{1, 2});
}

TEST_CASE("rules add up, and each names what it keeps") {
  const TimeZone utc("UTC0");
  const std::vector<int64_t> times{kNoon, kNoon - kHour, kNoon - kDay, kNoon - 400 * kDay};
  const Kept kept = ChooseKept(times, {.last = 2, .daily = 2, .yearly = 2});
  CHECK(kept == Kept{{"last", "daily", "yearly"}, {"last"}, {"daily"}, {"yearly"}});
}

TEST_CASE("days are those of the local time zone, also when the clock changes") {
  const int64_t midnight = 1'698'530'400;  // 2023-10-29 00:00 in Berlin, a day with 25 hours
  const std::vector<int64_t> times{midnight + 24 * kHour, midnight, midnight - 1};
  {
    const TimeZone berlin(kBerlin);
    CHECK(Names(ChooseKept(times, {.daily = 9})) == std::vector<size_t>{0, 2});
  }
  const TimeZone utc("UTC0");
  CHECK(Names(ChooseKept(times, {.daily = 9})) == std::vector<size_t>{0, 1});
}

TEST_CASE("the two hours of one name in autumn are two hours") {
  const TimeZone berlin(kBerlin);
  const int64_t first = 1'698'537'600;  // 2023-10-29 02:00 in summer time
  CHECK(Names(ChooseKept({first, first + kHour}, {.hourly = 9})).size() == 2);
}

}  // namespace
}  // namespace siltfs
