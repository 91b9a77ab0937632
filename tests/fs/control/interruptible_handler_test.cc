// Commands of the daemon that a client interrupts.
#include "fs/control/interruptible_handler.h"

#include <unistd.h>

#include <atomic>
#include <future>

#include "fs/control/client.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

struct Fixture {
  testing::TemporaryDirectory directory;
  const DaemonAddress address{.store = directory.path()};
  std::promise<void> started;
  std::promise<void> interrupted;
  std::atomic<int> interruptions = 0;

  std::unique_ptr<Server> Start() {
    const auto work = [this]() -> Result<Json> {
      started.set_value();
      interrupted.get_future().wait();
      return Status(StatusCode::kInterrupted, "the work was interrupted");
    };
    const auto interrupt = [this] {
      if (interruptions++ == 1) interrupted.set_value();  // the first one came too early
    };
    auto server = Server::Start(
        {.store = directory.path(),
         .own_uid = getuid(),
         .identity =
             [] {
               return Json{{"pid", getpid()}};
             },
         .handlers = {},
         .with_arguments = {
             {"work", Interruptible(work, interrupt)},
             {"quick", Interruptible([] { return Json("done"); }, [] { FAIL("not wanted"); })}}});
    REQUIRE_OK(server);
    return std::move(*server);
  }
};

TEST_CASE_METHOD(Fixture,
                 "A client that no longer wants the answer gets that of the interruption") {
  const auto server = Start();
  std::atomic<bool> unwanted = false;
  Patience patience = Patience::WhileItRuns();
  patience.interrupted = [&] { return unwanted.load(); };
  patience.unwanted = std::chrono::hours(1);
  auto answer = std::async(std::launch::async, [&] { return Ask(address, "work", patience); });
  started.get_future().wait();
  CHECK(interruptions == 0);
  unwanted = true;
  const auto outcome = answer.get();
  REQUIRE_CODE(outcome, kInterrupted);
  CHECK(outcome.status().ToString() == "the work was interrupted");
  CHECK(interruptions >= 2);
}

TEST_CASE_METHOD(Fixture, "The work ends, too, when its client has left") {
  const auto server = Start();
  {
    const auto stream = LocalStream::Connect(directory.path(), std::string(kSocketName));
    REQUIRE_OK(stream);
    REQUIRE_OK((*stream)->WriteAll(EncodeRequest({.command = "work"})));
    started.get_future().wait();
  }
  server->Stop();  // returns when the work has ended
  CHECK(interruptions >= 2);
}

TEST_CASE_METHOD(Fixture, "Work that is not interrupted answers") {
  const auto server = Start();
  const auto answer = Ask(address, "quick", Patience::WhileItRuns());
  REQUIRE_OK(answer);
  CHECK(*answer == Json("done"));
}

TEST_CASE_METHOD(Fixture, "A client does not wait long for a daemon that does not end its work") {
  std::promise<void> end;
  auto server = Server::Start({.store = directory.path(),
                               .own_uid = getuid(),
                               .identity =
                                   [] {
                                     return Json{{"pid", getpid()}};
                                   },
                               .handlers = {},
                               .with_arguments = {{"work", Interruptible(
                                                               [&]() -> Result<Json> {
                                                                 end.get_future().wait();
                                                                 return Json();
                                                               },
                                                               [] {})}}});
  REQUIRE_OK(server);
  Patience patience = Patience::WhileItRuns();
  patience.interrupted = [] { return true; };
  patience.unwanted = std::chrono::milliseconds(1);
  patience.afterwards = "its daemon goes on";
  const auto outcome = Ask(address, "work", patience);
  end.set_value();
  REQUIRE_CODE(outcome, kInterrupted);
  CHECK(outcome.status().cause() == "was interrupted; its daemon goes on");
}

}  // namespace
}  // namespace siltfs::control
