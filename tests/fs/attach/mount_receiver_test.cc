// The daemon's side of a mount that another process makes for it, without a kernel's mount.
#include "fs/attach/mount_receiver.h"

#include <fcntl.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/attach/attach_message.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kDevice = 53;

bool Never() { return false; }
void Nothing() {}
Descriptor OpenFile() { return Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC)); }

// A receiver whose daemon waits, and a client that is connected to it.
struct Fixture {
  Fixture() {
    const auto listener = LocalListener::Listen(directory.path(), "control");
    REQUIRE_OK(listener);
    auto connected = LocalStream::Connect(directory.path(), "control");
    REQUIRE_OK(connected);
    client = *std::move(connected);
    auto accepted = (*listener)->Accept();
    REQUIRE_OK(accepted);
    server = *std::move(accepted);
  }

  void Wait() {
    std::promise<void> waits;
    awaited = std::async(std::launch::async, [this, &waits] {
      return receiver.Await([this] { return interrupted.load(); }, [&] { waits.set_value(); });
    });
    waits.get_future().wait();
  }
  void Serve() {
    served = std::async(std::launch::async, [this] { return receiver.Serve(*server, Never); });
  }

  TemporaryDirectory directory;
  std::unique_ptr<LocalStream> client;
  std::unique_ptr<LocalStream> server;
  std::atomic<bool> interrupted = false;
  MountReceiver receiver;
  std::future<Result<ReceivedMount>> awaited;
  std::future<Status> served;
};

TEST_CASE("A daemon gets the mount, and its client gets the outcome") {
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kUnsupported}) {
    Fixture f;
    f.Wait();
    REQUIRE_OK(f.receiver.Check());
    f.Serve();
    const Descriptor file = OpenFile();
    REQUIRE_OK(f.client->SendDescriptors(attach::EncodeDevice(kDevice), {&file}));
    const auto received = f.awaited.get();
    REQUIRE_OK(received);
    CHECK(received->device == kDevice);
    CHECK(received->connection.valid());
    REQUIRE_CODE(f.receiver.Check(), kInUse);
    f.receiver.Finish(code == StatusCode::kOk ? Status::Ok() : Status(code, "no"));
    f.receiver.Finish(Status(StatusCode::kIoError, "too late"));
    CHECK(f.served.get().code() == code);
    REQUIRE_CODE(f.receiver.Check(), kInUse);
  }
}

TEST_CASE("A client is refused unless the daemon waits") {
  Fixture f;
  REQUIRE_CODE(f.receiver.Check(), kInUse);
  REQUIRE_CODE(f.receiver.Serve(*f.server, Never), kInUse);
  f.interrupted = true;
  REQUIRE_CODE(f.receiver.Await([] { return true; }, Nothing), kInterrupted);
  f.receiver.Finish(Status(StatusCode::kInterrupted, "interrupted"));
  REQUIRE_CODE(f.receiver.Serve(*f.server, Never), kInUse);
}

TEST_CASE("A client that leaves without a mount ends the wait") {
  Fixture f;
  f.Wait();
  f.Serve();
  f.client.reset();
  REQUIRE_CODE(f.served.get(), kInterrupted);
  REQUIRE_CODE(f.awaited.get(), kIoError);
}

TEST_CASE("A message without a mount ends the wait") {
  const bool with_descriptor = GENERATE(false, true);
  Fixture f;
  f.Wait();
  f.Serve();
  const Descriptor file = OpenFile();
  std::vector<const Descriptor*> descriptors;
  if (with_descriptor) descriptors.push_back(&file);
  REQUIRE_OK(
      f.client->SendDescriptors(attach::EncodeDevice(with_descriptor ? 0 : kDevice), descriptors));
  REQUIRE_CODE(f.served.get(), kInvalidArgument);
  REQUIRE_CODE(f.awaited.get(), kIoError);
}

TEST_CASE("The end of the store ends the session") {
  Fixture f;
  f.Wait();
  const Descriptor file = OpenFile();
  REQUIRE_OK(f.client->SendDescriptors(attach::EncodeDevice(kDevice), {&file}));
  REQUIRE_CODE(f.receiver.Serve(*f.server, [] { return true; }), kAborted);
  REQUIRE_OK(f.awaited.get());
}

}  // namespace
}  // namespace siltfs::testing
