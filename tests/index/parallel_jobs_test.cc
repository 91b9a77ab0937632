// Jobs that wait for the device run in parallel.
#include "index/flash/parallel_jobs.h"

#include <algorithm>
#include <atomic>

#include "hook_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("jobs run concurrently, and start before Finish is called") {
  Gathering gathering(4);
  ParallelJobs jobs(9, 4, [&](size_t) {
    gathering.Come();
    return Status::Ok();
  });
  while (!gathering.complete()) std::this_thread::yield();
  REQUIRE_OK(jobs.Finish());
}

TEST_CASE("without threads Finish runs the jobs in order") {
  std::vector<size_t> done;
  const auto self = std::this_thread::get_id();
  ParallelJobs jobs(5, 0, [&](size_t i) {
    CHECK(std::this_thread::get_id() == self);
    done.push_back(i);
    return Status::Ok();
  });
  CHECK(done.empty());
  REQUIRE_OK(jobs.Finish());
  CHECK(done == std::vector<size_t>{0, 1, 2, 3, 4});
  REQUIRE_OK(jobs.Finish());
  CHECK(done.size() == 5);
}

TEST_CASE("every job is done once") {
  const size_t threads = GENERATE(0, 1, 3, 200);
  std::vector<std::atomic<int>> times(100);
  {
    ParallelJobs jobs(times.size(), threads, [&](size_t i) {
      ++times[i];
      return Status::Ok();
    });
    if (threads == 3) REQUIRE_OK(jobs.Finish());
  }
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& count) { return count == 1; }));
}

TEST_CASE(
    "after a failure no job is started, and Finish always returns the first failed job's error") {
  const size_t threads = GENERATE(0, 4);
  std::atomic<size_t> begun{0};
  Gathering gathering(threads + 1);
  ParallelJobs jobs(1000, threads, [&](size_t i) -> Status {
    ++begun;
    if (i <= threads) gathering.Come();  // returns when jobs 0 to `threads` have started
    if (i == 0 && threads > 0) return Status::Ok();
    return {StatusCode::kIoError, std::to_string(i)};
  });
  const std::string first = threads == 0 ? "0" : "1";
  for (int i = 0; i < 2; ++i) {
    const Status status = jobs.Finish();
    REQUIRE(status.Is(StatusCode::kIoError));
    CHECK(status.cause() == first);
  }
  CHECK(begun <= 2 * threads + 1);
}

TEST_CASE("Finish returns at once if there are no jobs") {
  ParallelJobs jobs(0, 4, [](size_t) { return Status(StatusCode::kIoError, "never"); });
  REQUIRE_OK(jobs.Finish());
}

}  // namespace siltfs::testing
