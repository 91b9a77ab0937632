// Commands of the daemon that a client interrupts.
#include "fs/control/interruptible_handler.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>

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
             {"work", Interruptible(work, MakeInterruption(interrupt))},
             {"quick", Interruptible([] { return Json("done"); },
                                     MakeInterruption([] { FAIL("not wanted"); }))}}});
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

TEST_CASE_METHOD(Fixture, "A client may say at once that it does not want the answer any more") {
  const auto server = Start();
  const auto stream = LocalStream::Connect(directory.path(), std::string(kSocketName));
  REQUIRE_OK(stream);
  // The server receives both lines at the same time.
  REQUIRE_OK((*stream)->WriteAll(EncodeRequest({.command = "work"}) + std::string(kStop)));
  REQUIRE_OK((*stream)->SetTimeout(std::chrono::seconds(10)));
  const auto line = (*stream)->ReadLine(kMaxResponseBytes);
  if (!line.ok()) interrupted.set_value();  // so that the test ends
  REQUIRE_OK(line);
  CHECK(interruptions >= 2);
}

// Two commands that one interruption ends.
struct SharedFixture {
  testing::TemporaryDirectory directory;
  const DaemonAddress address{.store = directory.path()};
  std::promise<void> first_began;
  std::promise<void> second_began;
  std::promise<void> end;
  std::once_flag end_once;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> interruptions = 0;

  // The test ends the work, and so may the interruption: after a wanted call has returned, only
  // unwanted ones may be left.
  void EndWork() {
    std::call_once(end_once, [this] { end.set_value(); });
  }

  std::unique_ptr<Server> Start() {
    const auto interruption = MakeInterruption([this] {
      ++interruptions;
      EndWork();
    });
    const auto work = [this](std::promise<void>& began) {
      return [this, &began]() -> Result<Json> {
        began.set_value();
        ended.wait();
        return Json("done");
      };
    };
    auto server = Server::Start(
        {.store = directory.path(),
         .own_uid = getuid(),
         .identity =
             [] {
               return Json{{"pid", getpid()}};
             },
         .handlers = {},
         .with_arguments = {{"first", Interruptible(work(first_began), interruption)},
                            {"second", Interruptible(work(second_began), interruption)}}});
    REQUIRE_OK(server);
    return std::move(*server);
  }
};

TEST_CASE_METHOD(SharedFixture, "A client does not interrupt the work of another client") {
  const auto server = Start();
  auto wanted = std::async(std::launch::async,
                           [&] { return Ask(address, "first", Patience::WhileItRuns()); });
  first_began.get_future().wait();
  Patience patience = Patience::WhileItRuns();
  patience.interrupted = [] { return true; };
  patience.unwanted = std::chrono::milliseconds(500);  // ten looks of the server
  const auto unwanted = Ask(address, "second", patience);
  REQUIRE_CODE(unwanted, kInterrupted);
  second_began.get_future().wait();
  CHECK(interruptions == 0);
  EndWork();
  const auto answer = wanted.get();
  REQUIRE_OK(answer);
  CHECK(*answer == Json("done"));
}

TEST_CASE_METHOD(SharedFixture, "Work ends if none of its clients wants it") {
  const auto server = Start();
  Patience patience = Patience::WhileItRuns();
  std::atomic<bool> unwanted = false;
  patience.interrupted = [&] { return unwanted.load(); };
  patience.unwanted = std::chrono::hours(1);
  auto first = std::async(std::launch::async, [&] { return Ask(address, "first", patience); });
  auto second = std::async(std::launch::async, [&] { return Ask(address, "second", patience); });
  first_began.get_future().wait();
  second_began.get_future().wait();
  unwanted = true;
  REQUIRE_OK(first.get());
  REQUIRE_OK(second.get());
  CHECK(interruptions >= 1);
}

TEST_CASE("Without a thread for the watch, the command fails and the daemon goes on") {
  pthread_attr_t before;
  pthread_attr_t huge;
  REQUIRE(pthread_getattr_default_np(&before) == 0);
  REQUIRE(pthread_attr_init(&huge) == 0);
  // No machine has room for such a stack.
  REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 50) == 0);
  const auto handler =
      Interruptible([] { return Result<Json>(Json("done")); }, MakeInterruption([] {}));
  const std::function<Status()> check = [] { return Status::Ok(); };
  REQUIRE(pthread_setattr_default_np(&huge) == 0);
  const auto refused = handler(Json(), check);
  REQUIRE(pthread_setattr_default_np(&before) == 0);
  REQUIRE_CODE(refused, kIoError);
  REQUIRE_OK(handler(Json(), check));
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
                                                               MakeInterruption([] {}))}}});
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
