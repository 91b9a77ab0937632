#include "fs/control/transfer_session.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fs/control/byte_pieces.h"
#include "fs/control/client.h"
#include "fs/control/server.h"
#include "fs/interface/snapshot_transfers.h"
#include "store/base/thread_annotations.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Check = std::function<Status()>;

Status Fine() { return Status::Ok(); }

class FakeTransfers final : public testing::MemoryTransfers {
 public:
  std::function<Result<SendOutcome>(const SendRequest&, ByteSink&, const Check&)> send;
  std::function<Result<ReceiveOutcome>(const ReceiveRequest&, ByteSource&, const Check&)> receive;

  Result<SendOutcome> Send(const SendRequest& request, ByteSink& out, const Check& check) override {
    return send(request, out, check);
  }
  Result<ReceiveOutcome> Receive(const ReceiveRequest& request, ByteSource& in,
                                 const Check& check) override {
    return receive(request, in, check);
  }
  std::vector<UnfinishedReceive> Unfinished() const override {
    return {{.name = "one", .token = "t1"}, {.name = "two", .token = "t2", .running = true}};
  }
  Status Abandon(std::string_view name) override {
    if (name == "one") return Status::Ok();
    return {name == "two" ? StatusCode::kInUse : StatusCode::kNotFound, "cannot be abandoned"};
  }
};

class FakeFileSystem final : public testing::MemoryFileSystem {
 public:
  FakeTransfers& transfers() override { return transfers_; }

 private:
  FakeTransfers transfers_;
};

class FakeCache final : public KernelCache {
 public:
  void ForgetName(InodeNumber, const std::string& name) override { forgotten += name + "\n"; }
  void ForgetInode(InodeNumber, bool) override {}
  std::string forgotten;
};

// A pipe with a buffer of limited size. Its ends wait as those of StandardPipes do.
class Pipe {
 public:
  explicit Pipe(size_t most = SIZE_MAX) : most_(most) {}

  Status Write(ByteView bytes, const Check& check) {
    while (!bytes.empty()) {
      const MutexLock lock(mutex_);
      SILTFS_RETURN_IF_ERROR(check());
      if (broken_) return {StatusCode::kIoError, "the pipe is broken"};
      const size_t size = std::min(bytes.size(), most_ - text_.size());
      if (size == 0) {
        changed_.WaitFor(mutex_, kPipeInterval);
        continue;
      }
      text_ += AsText(bytes.first(size));
      bytes = bytes.subspan(size);
      changed_.NotifyAll();
    }
    return Status::Ok();
  }
  Result<size_t> Read(MutableByteView out, const Check& check) {
    const MutexLock lock(mutex_);
    while (true) {
      SILTFS_RETURN_IF_ERROR(check());
      if (!text_.empty() || ended_) break;
      changed_.WaitFor(mutex_, kPipeInterval);
    }
    const size_t size = std::min(out.size(), text_.size());
    std::copy_n(text_.begin(), size, out.begin());
    text_.erase(0, size);
    changed_.NotifyAll();
    return size;
  }
  void End() {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  void Break() {
    const MutexLock lock(mutex_);
    broken_ = true;
    changed_.NotifyAll();
  }
  // Waits until the buffer is full.
  void AwaitFull() {
    const MutexLock lock(mutex_);
    while (text_.size() < most_) changed_.Wait(mutex_);
  }
  std::string text() {
    const MutexLock lock(mutex_);
    return text_;
  }

 private:
  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  std::string text_ SILTFS_GUARDED_BY(mutex_);
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  bool broken_ SILTFS_GUARDED_BY(mutex_) = false;
};

class FakePipes final : public PipedStreams {
 public:
  FakePipes(Pipe& in, Pipe& out) : in_(in), out_(out) {}
  bool InputIsTerminal() const override { return false; }
  bool OutputIsTerminal() const override { return false; }
  std::unique_ptr<ByteSource> Input(Check check) override {
    return std::make_unique<Source>(in_, std::move(check));
  }
  std::unique_ptr<ByteSink> Output(Check check) override {
    return std::make_unique<Sink>(out_, std::move(check));
  }

 private:
  struct Source final : ByteSource {
    Source(Pipe& pipe, Check check) : pipe_(pipe), check_(std::move(check)) {}
    Result<size_t> Read(MutableByteView out) override { return pipe_.Read(out, check_); }
    Pipe& pipe_;
    const Check check_;
  };
  struct Sink final : ByteSink {
    Sink(Pipe& pipe, Check check) : pipe_(pipe), check_(std::move(check)) {}
    Status Write(ByteView bytes) override { return pipe_.Write(bytes, check_); }
    Pipe& pipe_;
    const Check check_;
  };

  Pipe& in_;
  Pipe& out_;
};

std::string SomeText(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

Result<std::string> ReadToEnd(ByteSource& in) {
  std::string text;
  Bytes buffer(10000);
  while (true) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, in.Read(buffer));
    if (got == 0) return text;
    text += AsText(ByteView(buffer).first(got));
  }
}

Status WriteForever(ByteSink& out) {
  const std::string text = SomeText(50000);
  while (true) SILTFS_RETURN_IF_ERROR(out.Write(AsBytes(text)));
}

struct Fixture {
  testing::TemporaryDirectory directory;
  const control::DaemonAddress address{.store = directory.path()};
  FakeFileSystem file_system;
  FakeCache cache;
  Pipe in;
  Pipe out;
  std::promise<void> finished;  // the daemon's transfer has ended
  std::unique_ptr<control::Server> server = Start();

  std::unique_ptr<control::Server> Start() {
    const auto open = [](const Json&) { return Status::Ok(); };
    auto started = control::Server::Start(
        {.store = directory.path(),
         .own_uid = getuid(),
         .identity = []() -> Json {
           return {{"pid", getpid()}, {"mountpoint", "/mnt"}, {"state", "mounted"}};
         },
         .handlers = {},
         .sessions = {
             {kSendSession,
              {.check = open,
               .greeting = {{"version", kTransferVersion}},
               .run =
                   [this](LocalStream& stream, const Json&, const std::function<bool()>& stopped) {
                     return ServeSend(file_system, stream, stopped);
                   }}},
             {kReceiveSession,
              {.check = open,
               .greeting = {{"version", kTransferVersion}},
               .run = [this](LocalStream& stream, const Json&,
                             const std::function<bool()>& stopped) {
                 return ServeReceive(file_system, &cache, stream, stopped);
               }}}}});
    REQUIRE_OK(started);
    return std::move(*started);
  }
  std::unique_ptr<LocalStream> Open(const char* session) {
    auto opened = control::OpenSession(address, session);
    REQUIRE_OK(opened);
    return std::move(opened->stream);
  }
  Result<Json> Send(const WantedSend& wanted, const Check& check = Fine) {
    FakePipes pipes(in, out);
    return SendThrough(*Open(kSendSession), wanted, pipes, check);
  }
  Result<Json> Receive(const WantedReceive& wanted, const Check& check = Fine) {
    FakePipes pipes(in, out);
    return ReceiveThrough(*Open(kReceiveSession), wanted, pipes, check);
  }
  // A transfer that keeps writing, or reading, until that fails with this code.
  void SendForever(StatusCode code) {
    file_system.transfers().send = [this, code](const SendRequest&, ByteSink& sink, const Check&) {
      Status written = WriteForever(sink);
      EndWith(written, code);
      return Result<SendOutcome>(std::move(written));
    };
  }
  void ReceiveForever(StatusCode code) {
    file_system.transfers().receive = [this, code](const ReceiveRequest&, ByteSource& source,
                                                   const Check&) {
      Status read = ReadToEnd(source).status();
      EndWith(read, code);
      if (read.ok()) read = Status(StatusCode::kInterrupted, "ended");
      return Result<ReceiveOutcome>(std::move(read));
    };
  }
  void EndWith(const Status& status, StatusCode code) {
    ended_as_expected = status.Is(code);
    finished.set_value();
  }
  std::atomic<bool> ended_as_expected = false;
};

TEST_CASE("Requests for transfers are decoded as they were encoded") {
  for (const WantedSend& wanted :
       {WantedSend{.snapshot = "s"},
        WantedSend{.snapshot = "\"\n", .base = "", .resume = "token", .two_way = true}}) {
    const auto decoded = DecodeWantedSend(EncodeWantedSend(wanted));
    REQUIRE_OK(decoded);
    CHECK(*decoded == wanted);
  }
  for (const WantedReceive& wanted :
       {WantedReceive{}, WantedReceive{.name = "n", .two_way = true}}) {
    const auto decoded = DecodeWantedReceive(EncodeWantedReceive(wanted));
    REQUIRE_OK(decoded);
    CHECK(*decoded == wanted);
  }
  for (const std::string line :
       {"", "[]", "{}", "null", R"({"two_way":true)", R"({"snapshot":"s"})",
        R"({"snapshot":1,"two_way":true})", R"({"snapshot":"s","two_way":1})",
        R"({"snapshot":"s","two_way":true,"base":null})",
        R"({"snapshot":"s","two_way":true,"resume":[]})"}) {
    CAPTURE(line);
    REQUIRE_CODE(DecodeWantedSend(line), kInvalidArgument);
  }
  for (const std::string line :
       {"", "[]", "{}", R"({"two_way":0})", R"({"name":1,"two_way":true})"}) {
    CAPTURE(line);
    REQUIRE_CODE(DecodeWantedReceive(line), kInvalidArgument);
  }
}

TEST_CASE_METHOD(Fixture, "A stream and its answers pass in both directions at once") {
  const std::string stream = SomeText(1'000'000);
  const std::string answers = SomeText(700'000);
  std::string answered;
  SendRequest asked;
  file_system.transfers().send = [&](const SendRequest& request, ByteSink& sink,
                                     const Check& check) -> Result<SendOutcome> {
    asked = request;
    SILTFS_RETURN_IF_ERROR(check());
    SILTFS_RETURN_IF_ERROR(sink.Write(AsBytes(stream)));
    SILTFS_ASSIGN_OR_RETURN(answered, ReadToEnd(*request.answers));
    return SendOutcome{.records = 1, .chunks = 2, .plain_bytes = 3};
  };
  REQUIRE_OK(in.Write(AsBytes(answers), Fine));
  in.End();
  const auto sent = Send({.snapshot = "s", .base = "b", .resume = "r", .two_way = true});
  REQUIRE_OK(sent);
  CHECK(out.text() == stream);
  CHECK(answered == answers);
  CHECK(asked.snapshot == "s");
  CHECK(asked.base == "b");
  CHECK(asked.resume == "r");
  CHECK(*sent == Json::parse(R"({"snapshot":"s","base":"b","records":1,"chunks":2,
                                 "plain_bytes":3,"stream_bytes":1000000})"));
}

TEST_CASE_METHOD(Fixture, "A one-way stream is sent without answers") {
  file_system.transfers().send = [&](const SendRequest& request, ByteSink& sink,
                                     const Check&) -> Result<SendOutcome> {
    if (request.answers != nullptr) return Status(StatusCode::kIoError, "there are answers");
    SILTFS_RETURN_IF_ERROR(sink.Write(AsBytes("stream")));
    return SendOutcome{};
  };
  const auto sent = Send({.snapshot = "s"});  // although `in` never ends
  REQUIRE_OK(sent);
  CHECK(sent->at("base").is_null());
  CHECK(out.text() == "stream");
}

TEST_CASE_METHOD(Fixture, "A stream is received, and the kernel learns of the snapshot") {
  const std::string stream = SomeText(500'000);
  std::string received;
  file_system.transfers().receive = [&](const ReceiveRequest& request, ByteSource& source,
                                        const Check&) -> Result<ReceiveOutcome> {
    SILTFS_ASSIGN_OR_RETURN(received, ReadToEnd(source));
    SILTFS_RETURN_IF_ERROR(request.answers->Write(AsBytes("answer")));
    return ReceiveOutcome{.snapshot = {.name = request.name}, .records = 4};
  };
  REQUIRE_OK(in.Write(AsBytes(stream), Fine));
  in.End();
  const auto outcome = Receive({.name = "new", .two_way = true});
  REQUIRE_OK(outcome);
  CHECK(received == stream);
  CHECK(out.text() == "answer");
  CHECK(cache.forgotten == "new\n");
  CHECK(*outcome == Json::parse(R"({"snapshot":"new","records":4,"chunks":0,"plain_bytes":0,
                                    "stream_bytes":500000})"));
}

TEST_CASE_METHOD(Fixture, "A refused transfer ends although the client has more to send") {
  file_system.transfers().receive = [](const ReceiveRequest&, ByteSource& source,
                                       const Check&) -> Result<ReceiveOutcome> {
    Bytes some(10);
    SILTFS_RETURN_IF_ERROR(source.Read(some).status());
    return Status(StatusCode::kAlreadyExists, "is there already");
  };
  SECTION("bytes wait") { REQUIRE_OK(in.Write(AsBytes(SomeText(5'000'000)), Fine)); }
  SECTION("the input is silent") { REQUIRE_OK(in.Write(AsBytes("some"), Fine)); }
  const auto outcome = Receive({});
  REQUIRE_CODE(outcome, kAlreadyExists);
  CHECK(outcome.status().cause() == "is there already");
}

TEST_CASE_METHOD(Fixture, "Missing snapshots and busy stores have no code of a store") {
  for (const StatusCode code : {StatusCode::kNotFound, StatusCode::kInUse}) {
    file_system.transfers().send = [&](const SendRequest&, ByteSink&, const Check&) {
      return Result<SendOutcome>(Status(code, "the cause"));
    };
    const auto sent = Send({.snapshot = "s"});
    REQUIRE_CODE(sent, kAborted);
    CHECK(sent.status().cause() == "the cause");
    file_system.transfers().receive = [&](const ReceiveRequest&, ByteSource&, const Check&) {
      return Result<ReceiveOutcome>(Status(code, "the cause"));
    };
    REQUIRE_CODE(Receive({}), kAborted);
  }
}

TEST_CASE_METHOD(Fixture, "A stream that ends early is no interruption") {
  ReceiveForever(StatusCode::kOk);
  in.End();
  const auto outcome = Receive({});
  REQUIRE_CODE(outcome, kAborted);
  CHECK(outcome.status().cause().find("--token") != std::string_view::npos);
}

TEST_CASE_METHOD(Fixture, "A slow client is not cut off") {
  Pipe narrow(100'000);
  FakePipes pipes(in, narrow);
  const std::string stream = SomeText(3'000'000);
  std::atomic<int> waits = 0;
  file_system.transfers().send = [&](const SendRequest&, ByteSink& sink,
                                     const Check&) -> Result<SendOutcome> {
    SILTFS_RETURN_IF_ERROR(sink.Write(AsBytes(stream)));
    return SendOutcome{};
  };
  const auto session = Open(kSendSession);
  auto sent = std::async(std::launch::async, [&] {
    return SendThrough(*session, {.snapshot = "s"}, pipes, [&] {
      ++waits;
      return Status::Ok();
    });
  });
  narrow.AwaitFull();
  // Some intervals of the pipe pass, so some of the daemon do.
  for (const int begin = waits; waits < begin + 5;) std::this_thread::yield();
  std::string taken;
  Bytes buffer(10000);
  while (taken.size() < stream.size()) {
    const auto got = narrow.Read(buffer, Fine);
    REQUIRE_OK(got);
    taken += AsText(ByteView(buffer).first(*got));
  }
  REQUIRE_OK(sent.get());
  CHECK(taken == stream);
}

TEST_CASE_METHOD(Fixture, "An interrupted client ends the transfer") {
  std::atomic<bool> interrupted = false;
  const auto check = [&]() -> Status {
    if (!interrupted) return Status::Ok();
    return {StatusCode::kInterrupted, "was interrupted"};
  };
  Pipe narrow(100'000);
  SECTION("of a sender") {
    SendForever(StatusCode::kIoError);
    FakePipes pipes(in, narrow);
    const auto session = Open(kSendSession);
    auto sent = std::async(std::launch::async,
                           [&] { return SendThrough(*session, {.snapshot = "s"}, pipes, check); });
    narrow.AwaitFull();
    interrupted = true;
    REQUIRE_CODE(sent.get(), kInterrupted);
    finished.get_future().wait();  // with the error of the socket, or because the client has left
  }
  SECTION("of a receiver") {
    ReceiveForever(StatusCode::kInterrupted);
    REQUIRE_OK(in.Write(AsBytes("some"), Fine));
    auto received = std::async(std::launch::async, [&] { return Receive({}, check); });
    interrupted = true;
    REQUIRE_CODE(received.get(), kInterrupted);
    finished.get_future().wait();
    CHECK(ended_as_expected);
  }
}

TEST_CASE_METHOD(Fixture, "A broken output ends the transfer with its failure") {
  out.Break();
  SECTION("of a sender") {
    SendForever(StatusCode::kIoError);
    const auto sent = Send({.snapshot = "s"});
    REQUIRE_CODE(sent, kIoError);
    CHECK(sent.status().cause() == "the pipe is broken");
    finished.get_future().wait();
  }
  SECTION("of a receiver") {
    file_system.transfers().receive = [](const ReceiveRequest& request, ByteSource& source,
                                         const Check&) -> Result<ReceiveOutcome> {
      SILTFS_RETURN_IF_ERROR(request.answers->Write(AsBytes("answer")));
      SILTFS_RETURN_IF_ERROR(ReadToEnd(source).status());
      return Status(StatusCode::kInterrupted, "ended");
    };
    const auto outcome = Receive({.two_way = true});
    REQUIRE_CODE(outcome, kIoError);
    CHECK(outcome.status().cause() == "the pipe is broken");
  }
}

TEST_CASE_METHOD(Fixture, "A daemon that stops ends transfers at once") {
  Pipe narrow(100'000);
  SECTION("that wait for a slow client") {
    SendForever(StatusCode::kAborted);
    FakePipes pipes(in, narrow);
    const auto session = Open(kSendSession);
    std::atomic<bool> leave = false;
    auto sent = std::async(std::launch::async, [&] {
      return SendThrough(*session, {.snapshot = "s"}, pipes, [&]() -> Status {
        if (!leave) return Status::Ok();
        return {StatusCode::kInterrupted, "was interrupted"};
      });
    });
    narrow.AwaitFull();
    server->StopCommands();
    finished.get_future().wait();
    CHECK(ended_as_expected);
    leave = true;
    REQUIRE_CODE(sent.get(), kInterrupted);
  }
  SECTION("that wait for bytes") {
    ReceiveForever(StatusCode::kAborted);
    auto received = std::async(std::launch::async, [&] { return Receive({}); });
    REQUIRE_OK(in.Write(AsBytes("some"), Fine));
    while (!in.text().empty()) std::this_thread::yield();
    server->StopCommands();
    const auto outcome = received.get();
    REQUIRE_CODE(outcome, kAborted);
    CHECK(outcome.status().cause() == "the store is being closed");
    CHECK(ended_as_expected);
  }
}

TEST_CASE_METHOD(Fixture, "A client that leaves ends the transfer") {
  SECTION("between pieces") {
    ReceiveForever(StatusCode::kInterrupted);
    auto session = Open(kReceiveSession);
    REQUIRE_OK(session->WriteAll("{\"two_way\":false}\n" + std::string("\1\0\0\0x", 5)));
    session.reset();
  }
  SECTION("within a piece") {
    ReceiveForever(StatusCode::kInterrupted);
    auto session = Open(kReceiveSession);
    REQUIRE_OK(session->WriteAll("{\"two_way\":false}\n" + std::string("\2\0\0\0x", 5)));
    session.reset();
  }
  SECTION("while bytes are sent") {
    SendForever(StatusCode::kIoError);
    auto session = Open(kSendSession);
    REQUIRE_OK(session->WriteAll("{\"snapshot\":\"s\",\"two_way\":false}\n"));
    session.reset();
  }
  finished.get_future().wait();
}

TEST_CASE_METHOD(Fixture, "Malformed requests and pieces are refused") {
  ReceiveForever(StatusCode::kInvalidArgument);
  for (const std::string& bytes :
       {std::string("x\n"), "{\"two_way\":false}\n" + std::string("\1\0\1\0", 4),
        "{\"two_way\":false}\n" + std::string("\xfe\xff\xff\xff", 4)}) {
    finished = {};
    const auto session = Open(kReceiveSession);
    REQUIRE_OK(session->WriteAll(bytes));
    REQUIRE_OK(session->FinishWriting());
    REQUIRE_OK(BeginPieces(*session));
    PieceSource source(*session, Fine);
    REQUIRE_OK(source.SkipToLast());
    const auto line = ReadLinePatiently(*session, control::kMaxResponseBytes, Fine);
    REQUIRE_OK(line);
    REQUIRE_CODE(control::DecodeResponse(line->value()), kInvalidArgument);
  }
}

TEST_CASE_METHOD(Fixture, "Unfinished transfers are listed and abandoned") {
  CHECK(ListUnfinished(file_system) == Json::parse(R"([{"name":"one","token":"t1","running":false},
                        {"name":"two","token":"t2","running":true}])"));
  const auto abandoned = RunAbandon(file_system, {{"name", "one"}});
  REQUIRE_OK(abandoned);
  CHECK(*abandoned == Json{{"name", "one"}});
  REQUIRE_CODE(RunAbandon(file_system, {{"name", "two"}}), kAborted);
  REQUIRE_CODE(RunAbandon(file_system, {{"name", "three"}}), kAborted);
  for (const Json& malformed : {Json(), Json::array(), Json::object(), Json{{"name", 1}}})
    REQUIRE_CODE(RunAbandon(file_system, malformed), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs
