#include "fs/control/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <set>

#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

// A command that runs until the test lets it finish.
class HeldCommand {
 public:
  // A handler that answers with `answer`. It may be called once.
  siltfs::control::Handler Handler(const char* answer) {
    return [this, answer]() -> Result<Json> {
      started_.set_value();
      finish_.get_future().wait();
      return Json(answer);
    };
  }
  void WaitUntilStarted() { started_.get_future().wait(); }
  void Finish() { finish_.set_value(); }

 private:
  std::promise<void> started_;
  std::promise<void> finish_;
};

struct Fixture {
  testing::TemporaryDirectory directory;
  const std::string& store = directory.path();
  const DaemonAddress address{.store = store};
  std::string state = "mounted";

  std::unique_ptr<Server> Start(std::map<std::string, Handler> handlers = {},
                                std::set<std::string> long_commands = {}) {
    handlers.emplace("stat", [] { return Json{{"files", 3}}; });
    auto server =
        Server::Start({.store = store,
                       .own_uid = getuid(),
                       .identity = [this]() -> Json {
                         return {{"pid", getpid()}, {"mountpoint", "/mnt"}, {"state", state}};
                       },
                       .handlers = std::move(handlers),
                       .long_commands = std::move(long_commands)});
    REQUIRE_OK(server);
    return std::move(*server);
  }
  std::unique_ptr<LocalStream> Connect() {
    auto stream = LocalStream::Connect(store, std::string(kSocketName));
    REQUIRE_OK(stream);
    return std::move(*stream);
  }
};

TEST_CASE_METHOD(Fixture, "A command is answered") {
  const auto server = Start();
  const auto answer = Ask(address, "stat");
  REQUIRE_OK(answer);
  CHECK((*answer)["files"] == 3);
}

TEST_CASE_METHOD(Fixture, "A connection takes one line, gives one answer, and ends") {
  const auto server = Start();
  const auto stream = Connect();
  REQUIRE_OK(stream->WriteAll("{\"command\":\"stat\"}\n{\"command\":\"stat\"}\n"));
  const auto all = stream->ReadAll(kMaxResponseBytes);
  REQUIRE_OK(all);
  CHECK(*all == "{\"ok\":true,\"result\":{\"files\":3}}\n");
}

TEST_CASE_METHOD(Fixture, "A handler's failure reaches the client") {
  const auto server = Start({{"sync", [] { return Status(StatusCode::kNoSpace, "full"); }}});
  REQUIRE_CODE(Ask(address, "sync"), kNoSpace);
}

TEST_CASE_METHOD(Fixture, "An unknown command and a malformed request are refused") {
  const auto server = Start();
  const auto unknown = Ask(address, "format");
  REQUIRE_CODE(unknown, kInvalidArgument);
  CHECK(unknown.status().cause().find("format") != std::string_view::npos);
  const auto stream = Connect();
  REQUIRE_OK(stream->WriteAll("stat\n"));
  const auto line = stream->ReadLine(kMaxResponseBytes);
  REQUIRE_OK(line);
  REQUIRE_CODE(DecodeResponse(**line), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "A request that does not end is refused once it is too long") {
  const auto server = Start();
  const auto stream = Connect();
  REQUIRE_OK(stream->WriteAll(std::string(kMaxRequestBytes + 1, 'x')));
  const auto line = stream->ReadLine(kMaxResponseBytes);
  REQUIRE_OK(line);
  REQUIRE_CODE(DecodeResponse(**line), kFileTooLarge);
}

TEST_CASE_METHOD(Fixture, "Only the owner can use the socket, and the server's end removes it") {
  auto server = Start();
  const std::string path = directory / "control";
  struct stat stat = {};
  REQUIRE(lstat(path.c_str(), &stat) == 0);
  CHECK(stat.st_mode == (S_IFSOCK | 0600));
  server->Stop();
  CHECK(lstat(path.c_str(), &stat) != 0);
  REQUIRE_CODE(Ask(address, "stat"), kNotFound);
}

TEST_CASE_METHOD(Fixture, "A socket left by a killed daemon is replaced") {
  {
    // The socket is bound, then closed without being removed.
    auto listener = LocalListener::Listen(store, "other");
    REQUIRE_OK(listener);
    REQUIRE(link((directory / "other").c_str(), (directory / "control").c_str()) == 0);
  }
  REQUIRE_CODE(Ask(address, "stat"), kStale);
  const auto server = Start();
  REQUIRE_OK(Ask(address, "stat"));
}

TEST_CASE_METHOD(Fixture, "A daemon is found by its abstract name if the directory is gone") {
  const auto server = Start();
  DaemonAddress by_name{.store = directory / "gone", .device = "0:" + std::to_string(getpid())};
  REQUIRE_OK(server->ListenAbstract(AbstractName(by_name.store, by_name.device)));
  REQUIRE_OK(Ask(by_name, "stat"));
  SECTION("but not if another user may have taken the name") {
    by_name.owner = getuid() + 1;
    REQUIRE_CODE(Ask(by_name, "stat"), kNotFound);
  }
  SECTION("but not after it has stopped") {
    server->Stop();
    REQUIRE_CODE(Ask(by_name, "stat"), kNotFound);
  }
}

TEST_CASE_METHOD(Fixture, "An unreachable directory is not taken for an unmounted store") {
  // The system refuses a path of this length. So it stays unknown whether there is a daemon.
  const DaemonAddress unreachable{.store = "/" + std::string(5000, 'n')};
  const auto answer = Ask(unreachable, "stat");
  CHECK_FALSE(answer.ok());
  CHECK_FALSE(IsGone(answer.status()));
}

TEST_CASE_METHOD(Fixture, "The error for a missing answer names the daemon's process") {
  std::promise<void> finish;
  const std::shared_future<void> finished = finish.get_future().share();
  auto server = Start({{"sync", [&]() -> Result<Json> {
                          finished.wait();
                          return Json();
                        }}});
  unsigned notices = 0;
  Patience patience{.answer = std::chrono::milliseconds(300),
                    .notice = [&](const std::string&) { ++notices; },
                    .notice_interval = std::chrono::milliseconds(1)};
  const auto answer = Ask(address, "sync", patience);
  REQUIRE_CODE(answer, kIoError);
  CHECK_FALSE(IsGone(answer.status()));
  CHECK(answer.status().ToString().find(std::to_string(getpid())) != std::string::npos);
  CHECK(notices > 0);
  finish.set_value();
}

TEST_CASE_METHOD(
    Fixture, "While the store is being closed the daemon reports that, and accepts no command") {
  const auto server = Start();
  state = "closing";
  server->StopCommands();
  REQUIRE_CODE(Ask(address, "stat"), kAborted);
  const auto identity = Identify(address);
  REQUIRE_OK(identity);
  CHECK(identity->state == kClosing);
  CHECK(identity->mountpoint == "/mnt");
  CHECK(identity->pid == getpid());
  auto waiter = Waiter::Register(address);
  REQUIRE_OK(waiter);
  server->Stop();
  REQUIRE_CODE(Identify(address), kNotFound);
  server->AnswerWaiters(Status(StatusCode::kIoError, "the disk failed"));
}

TEST_CASE_METHOD(Fixture, "Running commands are answered before the store is closed") {
  HeldCommand sync;
  auto server = Start({{"sync", sync.Handler("synced")}});
  auto asking = std::async(std::launch::async, [&] { return Ask(address, "sync"); });
  sync.WaitUntilStarted();
  auto stopped = std::async(std::launch::async, [&] { server->StopCommands(); });
  while (!Ask(address, "stat").status().Is(StatusCode::kAborted)) {
  }
  CHECK(stopped.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  sync.Finish();
  stopped.get();
  const auto answer = asking.get();
  REQUIRE_OK(answer);
  CHECK(*answer == "synced");
}

TEST_CASE_METHOD(Fixture,
                 "A command with arguments learns that its client has left, or that it must end") {
  std::promise<void> started;
  std::promise<Status> ended;
  HandlerWithArguments run = [&](const Json& arguments, const std::function<Status()>& check) {
    CHECK(arguments == "now");
    Status first = check();
    CHECK(first.ok());
    started.set_value();
    Status outcome;
    while (outcome.ok()) outcome = check();
    ended.set_value(outcome);
    return Result<Json>(std::move(outcome));
  };
  auto server = Server::Start({.store = store,
                               .own_uid = getuid(),
                               .identity = [] { return Json(); },
                               .handlers = {},
                               .with_arguments = {{"run", run}}});
  REQUIRE_OK(server);
  const std::string request = EncodeRequest({.command = "run", .arguments = "now"});
  auto stream = Connect();
  REQUIRE_OK(stream->WriteAll(request));
  // A client that only finishes writing still waits for the answer.
  REQUIRE_OK(stream->FinishWriting());
  started.get_future().wait();
  const bool leaves = GENERATE(true, false);
  if (leaves) {
    stream.reset();
  } else {
    (*server)->StopCommands();
  }
  CHECK(ended.get_future().get().Is(leaves ? StatusCode::kInterrupted : StatusCode::kAborted));
}

TEST_CASE_METHOD(Fixture, "Two daemons cannot share a store's socket") {
  const auto server = Start();
  REQUIRE_CODE(Server::Start({.store = store, .identity = {}, .handlers = {}}), kInUse);
}

TEST_CASE_METHOD(Fixture, "Stalled clients do not delay others") {
  const auto server = Start();
  std::vector<std::unique_ptr<LocalStream>> stalled;
  for (size_t i = 0; i < 3 * Server::kMaxConnections; ++i) {
    stalled.push_back(Connect());
    REQUIRE_OK(stalled.back()->WriteAll("{\"comm"));
  }
  REQUIRE_OK(Ask(address, "stat"));
}

TEST_CASE_METHOD(Fixture, "When all connections are busy, a new client gets an error") {
  std::promise<void> finish;
  const std::shared_future<void> finished = finish.get_future().share();
  std::atomic<size_t> running = 0;
  std::promise<void> full;
  const auto server = Start({{"sync", [&]() -> Result<Json> {
                                if (++running == Server::kMaxConnections) full.set_value();
                                finished.wait();
                                return Json();
                              }}});
  std::vector<std::unique_ptr<LocalStream>> working;
  for (size_t i = 0; i < Server::kMaxConnections; ++i) {
    working.push_back(Connect());
    REQUIRE_OK(working.back()->WriteAll(EncodeRequest({.command = "sync"})));
  }
  full.get_future().wait();
  CHECK_FALSE(Ask(address, "stat").ok());
  finish.set_value();
  for (const auto& stream : working) {
    const auto line = stream->ReadLine(kMaxResponseBytes);
    REQUIRE_OK(line);
    REQUIRE_OK(DecodeResponse(**line));
  }
  REQUIRE_OK(Ask(address, "stat"));
}

TEST_CASE_METHOD(Fixture,
                 "Long commands leave connections for others, even if their clients have left") {
  std::promise<void> finish;
  const std::shared_future<void> finished = finish.get_future().share();
  std::atomic<size_t> running = 0;
  std::promise<void> full;
  const auto server = Start({{"gc",
                              [&]() -> Result<Json> {
                                if (++running == Server::kMaxLongCommands) full.set_value();
                                finished.wait();
                                return Json();
                              }}},
                            {"gc"});
  for (size_t i = 0; i < Server::kMaxLongCommands; ++i)
    REQUIRE_OK(Connect()->WriteAll(EncodeRequest({.command = "gc"})));  // the client leaves
  full.get_future().wait();
  for (size_t i = 0; i < Server::kMaxConnections; ++i) REQUIRE_CODE(Ask(address, "gc"), kInUse);
  REQUIRE_OK(Ask(address, "stat"));
  CHECK(running == Server::kMaxLongCommands);
  finish.set_value();
  // Another long command is accepted as soon as one of them has ended.
  Result<Json> again = Ask(address, "gc");
  while (!again.ok()) {
    REQUIRE_CODE(again, kInUse);
    again = Ask(address, "gc");
  }
}

TEST_CASE_METHOD(Fixture, "Stop cuts off clients without a request, and answers the others") {
  HeldCommand sync;
  auto server = Start({{"sync", sync.Handler("synced")}});
  const auto silent = Connect();
  const auto asking = Connect();
  REQUIRE_OK(asking->WriteAll(EncodeRequest({.command = "sync"})));
  sync.WaitUntilStarted();
  auto stopped = std::async(std::launch::async, [&] { server->Stop(); });
  const auto nothing = silent->ReadLine(kMaxResponseBytes);  // while the handler runs
  sync.Finish();
  stopped.get();
  const auto line = asking->ReadLine(kMaxResponseBytes);
  REQUIRE_OK(line);
  REQUIRE(line->has_value());
  CHECK(*DecodeResponse(**line) == "synced");
  REQUIRE_OK(nothing);
}

TEST_CASE_METHOD(Fixture,
                 "A waiter waits for the daemon's end, and gets the outcome of closing the store") {
  auto server = Start();
  auto waiter = Waiter::Register(address);
  REQUIRE_OK(waiter);
  auto waiting = std::async(std::launch::async, [&] { return waiter->Wait(); });
  server->Stop();
  SECTION("well") {
    server->AnswerWaiters(Status());
    server.reset();
    REQUIRE_OK(waiting.get());
  }
  SECTION("badly") {
    server->AnswerWaiters(Status(StatusCode::kIoError, "the disk failed"));
    server.reset();
    REQUIRE_CODE(waiting.get(), kIoError);
  }
  SECTION("not at all") {
    server.reset();
    REQUIRE_CODE(waiting.get(), kAborted);
  }
}

TEST_CASE_METHOD(Fixture, "Waiting clients that left do not prevent others from waiting") {
  auto server = Start();
  for (size_t i = 0; i < 2 * Server::kMaxWaiters; ++i) REQUIRE_OK(Waiter::Register(address));
  auto waiter = Waiter::Register(address);
  REQUIRE_OK(waiter);
  server->Stop();
  server->AnswerWaiters(Status());
  server.reset();
  REQUIRE_OK(waiter->Wait());
}

}  // namespace
}  // namespace siltfs::control
