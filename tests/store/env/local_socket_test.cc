#include "store/env/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

using std::chrono::milliseconds;

struct Pair {
  testing::TemporaryDirectory directory;
  std::unique_ptr<LocalListener> listener;
  std::unique_ptr<LocalStream> client;
  std::unique_ptr<LocalStream> server;

  explicit Pair(const std::string& below = "") {
    const std::string path = directory.path() + below;
    std::filesystem::create_directories(path);
    auto listening = LocalListener::Listen(path, "control");
    REQUIRE_OK(listening);
    listener = std::move(*listening);
    auto connected =
        LocalStream::Connect(path, "control");  // the kernel connects without an Accept
    REQUIRE_OK(connected);
    client = std::move(*connected);
    auto accepted = listener->Accept();
    REQUIRE_OK(accepted);
    server = std::move(*accepted);
  }
};

std::string Line(LocalStream& stream) {
  auto line = stream.ReadLine(1'000);
  REQUIRE_OK(line);
  REQUIRE(line->has_value());
  return **line;
}

TEST_CASE("lines go in one direction and an answer of many lines in the other") {
  Pair pair;
  REQUIRE_OK(pair.client->WriteAll("stat\nnow\n"));
  REQUIRE(Line(*pair.server) == "stat");
  REQUIRE(Line(*pair.server) == "now");
  REQUIRE_OK(pair.server->WriteAll("one\ntwo\n"));
  pair.server.reset();
  auto answer = pair.client->ReadAll(100);
  REQUIRE_OK(answer);
  REQUIRE(*answer == "one\ntwo\n");
}

TEST_CASE("an answer larger than the socket's buffer arrives whole") {
  Pair pair;
  const std::string large(3 << 20, 'x');
  std::thread writer([&] {
    REQUIRE_OK(pair.server->WriteAll(large));
    pair.server.reset();
  });
  auto answer = pair.client->ReadAll(large.size());
  writer.join();
  REQUIRE_OK(answer);
  REQUIRE(*answer == large);
}

TEST_CASE("a directory's path may be longer than a socket address") {
  Pair pair("/" + std::string(200, 'd') + "/" + std::string(200, 'e'));
  REQUIRE_OK(pair.client->WriteAll("hello\n"));
  REQUIRE(Line(*pair.server) == "hello");
}

TEST_CASE("every length of path around the limit works") {
  testing::TemporaryDirectory directory;
  for (size_t length = 70; length < 90; ++length) {
    const std::string path = directory / std::string(length, 'd');
    REQUIRE(mkdir(path.c_str(), 0700) == 0);
    auto listener = LocalListener::Listen(path, "control");
    REQUIRE_OK(listener);
    REQUIRE_OK(LocalStream::Connect(path, "control"));
    REQUIRE(std::filesystem::is_socket(path + "/control"));
  }
}

TEST_CASE("a name that is too long for an address is refused") {
  testing::TemporaryDirectory directory;
  REQUIRE_CODE(LocalListener::Listen(directory.path(), std::string(150, 'n')), kNameTooLong);
}

TEST_CASE("a missing socket and a socket without a listener give different errors") {
  testing::TemporaryDirectory directory;
  auto nothing = LocalStream::Connect(directory.path(), "control");
  REQUIRE_CODE(nothing, kNotFound);
  REQUIRE(nothing.status().path() == directory / "control");
  REQUIRE_CODE(LocalStream::Connect(directory / "no", "control"), kNotFound);
  // A socket of a process that was killed.
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (directory / "control").c_str());
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  close(fd);
  auto stale = LocalStream::Connect(directory.path(), "control");
  REQUIRE_CODE(stale, kStale);
  REQUIRE(stale.status().ToString() == directory / "control" + ": no process listens on it");

  SECTION("a new listener replaces the stale socket") {
    auto listener = LocalListener::Listen(directory.path(), "control");
    REQUIRE_OK(listener);
    REQUIRE_OK(LocalStream::Connect(directory.path(), "control"));
  }
}

TEST_CASE("a client connects only to a socket, not to a link or a file") {
  Pair pair;
  const std::string elsewhere = pair.directory / "elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::filesystem::create_symlink(pair.directory / "control", elsewhere + "/control");
  auto link = LocalStream::Connect(elsewhere, "control");
  REQUIRE_CODE(link, kNotFound);
  CHECK(link.status().ToString() == elsewhere + "/control: is not a socket");
  std::ofstream(elsewhere + "/file") << "precious";
  REQUIRE_CODE(LocalStream::Connect(elsewhere, "file"), kNotFound);
}

TEST_CASE("an abstract name belongs to one listener and ends with it") {
  const std::string name = "siltfs-test/" + std::to_string(getpid());
  REQUIRE_CODE(LocalStream::ConnectAbstract(name), kStale);
  auto listener = LocalListener::ListenAbstract(name);
  REQUIRE_OK(listener);
  REQUIRE_CODE(LocalListener::ListenAbstract(name), kInUse);
  auto client = LocalStream::ConnectAbstract(name);
  REQUIRE_OK(client);
  auto server = (*listener)->Accept();
  REQUIRE_OK(server);
  REQUIRE_OK((*client)->WriteAll("hello\n"));
  CHECK(Line(**server) == "hello");
  auto pid = (*client)->PeerPid();
  REQUIRE_OK(pid);
  CHECK(*pid == getpid());
  listener->reset();
  REQUIRE_CODE(LocalStream::ConnectAbstract(name), kStale);
  REQUIRE_OK(LocalListener::ListenAbstract(name));
  REQUIRE_CODE(LocalListener::ListenAbstract(std::string(150, 'n')), kNameTooLong);
}

TEST_CASE("a running listener is not replaced, nor is a file that is not a socket") {
  Pair pair;
  REQUIRE_CODE(LocalListener::Listen(pair.directory.path(), "control"), kInUse);
  std::ofstream(pair.directory / "file") << "precious";
  REQUIRE_CODE(LocalListener::Listen(pair.directory.path(), "file"), kAlreadyExists);
  REQUIRE(std::filesystem::file_size(pair.directory / "file") == 8);
}

TEST_CASE("the socket has the requested mode and is removed with its listener") {
  testing::TemporaryDirectory directory;
  const mode_t old_mask = umask(0);
  auto listener = LocalListener::Listen(directory.path(), "control");
  umask(old_mask);
  REQUIRE_OK(listener);
  struct stat info;
  REQUIRE(stat((directory / "control").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 0777) == 0600);
  listener->reset();
  REQUIRE(stat((directory / "control").c_str(), &info) != 0);
}

TEST_CASE("shutting the listener down ends a waiting Accept and every later one") {
  testing::TemporaryDirectory directory;
  auto listener = LocalListener::Listen(directory.path(), "control");
  REQUIRE_OK(listener);
  std::optional<Result<std::unique_ptr<LocalStream>>> outcome;
  std::thread waiting([&] { outcome = (*listener)->Accept(); });
  (*listener)->Shutdown();
  waiting.join();
  REQUIRE_CODE(*outcome, kAborted);
  REQUIRE_CODE((*listener)->Accept(), kAborted);
}

TEST_CASE("shutting a stream down ends a waiting read") {
  Pair pair;
  std::optional<Result<std::optional<std::string>>> outcome;
  std::thread waiting([&] { outcome = pair.server->ReadLine(100); });
  pair.server->Shutdown();
  waiting.join();
  REQUIRE_OK(*outcome);
  REQUIRE_FALSE((*outcome)->has_value());
}

TEST_CASE("a line longer than the limit is refused, even if it does not end") {
  Pair pair;
  const bool ends = GENERATE(true, false);
  REQUIRE_OK(pair.client->WriteAll(std::string(11, 'x') + (ends ? "\n" : "")));
  pair.client.reset();
  REQUIRE_CODE(pair.server->ReadLine(10), kFileTooLarge);
}

TEST_CASE("a line of exactly the limit is accepted") {
  Pair pair;
  REQUIRE_OK(pair.client->WriteAll(std::string(10, 'x') + "\n"));
  auto line = pair.server->ReadLine(10);
  REQUIRE_OK(line);
  REQUIRE(line->value().size() == 10);
}

TEST_CASE("reading a whole stream beyond the limit is refused") {
  Pair pair;
  REQUIRE_OK(pair.client->WriteAll(std::string(11, 'x')));
  pair.client.reset();
  REQUIRE_CODE(pair.server->ReadAll(10), kFileTooLarge);
}

TEST_CASE("at the end of a stream there is no further line, and an unfinished line is an error") {
  Pair pair;
  const bool within = GENERATE(true, false);
  REQUIRE_OK(pair.client->WriteAll(within ? "one\ntw" : "one\n"));
  pair.client.reset();
  REQUIRE(Line(*pair.server) == "one");
  auto rest = pair.server->ReadLine(100);
  if (within) {
    REQUIRE_CODE(rest, kAborted);
  } else {
    REQUIRE_OK(rest);
    REQUIRE_FALSE(rest->has_value());
  }
}

TEST_CASE("a side that has finished writing can still read") {
  Pair pair;
  REQUIRE_OK(pair.client->WriteAll("question"));
  REQUIRE_OK(pair.client->FinishWriting());
  REQUIRE(pair.server->ReadAll(100).value() == "question");
  REQUIRE_OK(pair.server->WriteAll("answer\n"));
  REQUIRE(Line(*pair.client) == "answer");
}

TEST_CASE("a side learns that the other one has left, but not before") {
  Pair pair;
  CHECK_FALSE(pair.server->PeerHasLeft());
  REQUIRE_OK(pair.client->WriteAll("question"));
  REQUIRE_OK(pair.client->FinishWriting());
  CHECK_FALSE(pair.server->PeerHasLeft());
  pair.client.reset();
  CHECK(pair.server->PeerHasLeft());
}

TEST_CASE("writing to a closed peer is an error, not a signal") {
  Pair pair;
  REQUIRE(std::signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  pair.client.reset();
  Status status = pair.server->WriteAll("anyone?");
  REQUIRE_CODE(status, kIoError);
  REQUIRE(status.path() == pair.directory / "control");
}

TEST_CASE("a timeout ends the wait for a silent peer") {
  Pair pair;
  REQUIRE_OK(pair.client->SetTimeout(milliseconds(20)));
  REQUIRE_CODE(pair.client->ReadLine(100), kInterrupted);
  // The buffer is full, and the peer does not read.
  REQUIRE_CODE(pair.client->WriteAll(std::string(8 << 20, 'x')), kInterrupted);
}

TEST_CASE("a timeout ends the wait for a line that comes byte by byte") {
  Pair pair;
  REQUIRE_OK(pair.client->SetTimeout(milliseconds(20)));
  std::thread peer([&] {
    for (int i = 0; i < 200; ++i) {
      pair.server->WriteAll("x").IgnoreError("the client may have left");
      std::this_thread::sleep_for(milliseconds(5));
    }
    pair.server->WriteAll("\n").IgnoreError("the client may have left");
  });
  const auto line = pair.client->ReadLine(1'000);
  peer.join();
  REQUIRE_CODE(line, kInterrupted);
  CHECK(Line(*pair.client) == std::string(200, 'x'));  // nothing was lost
}

TEST_CASE("some bytes are read and written, and nothing is lost when a wait ends") {
  Pair pair;
  REQUIRE_OK(pair.client->SetTimeout(milliseconds(20)));
  REQUIRE_OK(pair.server->SetTimeout(milliseconds(20)));
  REQUIRE_OK(pair.client->WriteAll("line\nrest"));
  REQUIRE(Line(*pair.server) == "line");
  Bytes bytes(3);
  std::string read;
  // What was received together with the line comes first.
  while (read.size() < 4) {
    const auto got = pair.server->ReadSome(bytes);
    REQUIRE_OK(got);
    read += AsText(ByteView(bytes).first(*got));
  }
  CHECK(read == "rest");
  REQUIRE_CODE(pair.server->ReadSome(bytes), kInterrupted);

  const std::string text(1 << 20, 'x');
  size_t written = 0;
  while (true) {
    const auto some = pair.client->WriteSome(AsBytes(text));
    if (some.status().Is(StatusCode::kInterrupted)) break;
    REQUIRE_OK(some);
    written += *some;
  }
  REQUIRE(written > 0);
  REQUIRE_OK(pair.client->FinishWriting());
  Bytes large(100'000);
  for (size_t size = 1; size > 0; written -= size) {
    const auto got = pair.server->ReadSome(large);
    REQUIRE_OK(got);
    size = *got;
  }
  CHECK(written == 0);
  pair.client.reset();
  REQUIRE_CODE(pair.server->WriteSome(AsBytes("anyone?")), kIoError);
}

TEST_CASE("each side knows the user and the process of its peer") {
  Pair pair;
  REQUIRE(pair.server->PeerUid().value() == getuid());
  REQUIRE(pair.client->PeerUid().value() == getuid());
}

}  // namespace
}  // namespace siltfs
