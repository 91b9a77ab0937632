#include "index/flash/background_steps.h"

#include <future>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Status Full() { return {StatusCode::kNoSpace, "the disk is full"}; }

}  // namespace

TEST_CASE("a caller does not get the failure of a step that began before its request") {
  std::promise<void> requested;
  std::atomic<int> calls{0};
  std::atomic<bool> done{false};
  BackgroundSteps steps(true, [&]() -> Result<bool> {
    if (calls++ == 0) {
      requested.get_future().wait();  // the request comes while this step runs
      return Full();
    }
    done = true;
    return false;
  });
  while (calls == 0) std::this_thread::yield();
  CHECK(steps.WaitUntil([&] { return done.load(); }, [&] { requested.set_value(); }).ok());
}

TEST_CASE("a caller gets the failure of a step that began after its request") {
  std::atomic<int> calls{0};
  BackgroundSteps steps(true, [&]() -> Result<bool> {
    ++calls;
    return Full();
  });
  while (calls == 0) std::this_thread::yield();
  REQUIRE_CODE(steps.WaitUntil([] { return false; }), kNoSpace);
  CHECK(steps.failure().ok());  // a full disk is no permanent failure
}

TEST_CASE("a permanent failure ends the thread and fails all further calls") {
  BackgroundSteps steps(
      true, []() -> Result<bool> { return Status(StatusCode::kIoError, "the device has failed"); });
  REQUIRE_CODE(steps.WaitUntil([] { return false; }), kIoError);
  REQUIRE_CODE(steps.WaitUntil([] { return false; }), kIoError);
  REQUIRE_CODE(steps.failure(), kIoError);
}

TEST_CASE("without a thread the caller runs the steps") {
  int work = 3;
  BackgroundSteps steps(false, [&]() -> Result<bool> { return work > 0 && --work >= 0; });
  CHECK(steps.WaitUntil([&] { return work == 1; }).ok());
  CHECK(work == 1);
  CHECK(steps.RunAll().ok());
  CHECK(work == 0);
}

}  // namespace siltfs::testing
