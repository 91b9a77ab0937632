// The daemon's side of a transfer, with clients that do not follow the protocol.
#include "fs/transfer/lane_session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "store/env/packet_socket.h"
#include "store/env/shared_memory.h"
#include "tests/support/catch.h"

namespace siltfs::transfer {
namespace {

// Answers with the number of the request, and changes a byte of the slot.
class EchoHandler final : public LaneHandler {
 public:
  explicit EchoHandler(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~EchoHandler() override { --alive_; }
  Answer Handle(const Request& request, MutableByteView slot) override {
    slot[0] = 1;
    return {.bytes = request.bytes, .number = request.number};
  }

 private:
  std::atomic<int>& alive_;
};

struct Fixture {
  std::atomic<bool> stopped{false};
  std::atomic<int> alive{0};
  std::unique_ptr<LocalStream> client;
  std::unique_ptr<LocalStream> server;
  Status outcome;
  std::thread thread;

  Fixture() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    client = std::make_unique<LocalStream>("client", Descriptor(ends[0]));
    server = std::make_unique<LocalStream>("server", Descriptor(ends[1]));
    thread = std::thread([this] {
      outcome = RunLanes(
          *server, [this] { return std::make_unique<EchoHandler>(alive); },
          [this] { return stopped.load(); });
    });
  }
  ~Fixture() {
    client.reset();
    if (thread.joinable()) thread.join();
    outcome.IgnoreError("the test has checked it");
  }
  Status End() {
    thread.join();
    CHECK(alive == 0);
    return outcome;
  }
  static Bytes Message(char kind) {
    Bytes message(kMainBytes);
    message[0] = static_cast<uint8_t>(kind);
    return message;
  }
  void Send(char kind) { REQUIRE_OK(client->WriteAll(AsText(Message(kind)))); }
  std::unique_ptr<PacketSocket> NewLane(const Descriptor& memory) {
    auto pair = PacketSocket::MakePair();
    REQUIRE_OK(pair);
    REQUIRE_OK(client->SendDescriptors(Message(kLaneMessage), {&pair->other, &memory}));
    return std::move(pair->own);
  }
};

Descriptor Memory(size_t bytes, unsigned seals) {
  Descriptor memory(memfd_create("test", MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(memory.get(), F_ADD_SEALS, seals) == 0);
  return memory;
}

constexpr unsigned kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST_CASE_METHOD(Fixture, "A lane answers its requests in order") {
  const auto memory = SharedMemory::Make(kLaneBytes);
  REQUIRE_OK(memory);
  const auto lane = NewLane(memory->descriptor());
  for (uint64_t number : {5, 6, 7}) {
    REQUIRE_OK(lane->Send(EncodeRequest({.slot = 1, .number = number})));
  }
  for (uint64_t number : {5, 6, 7}) {
    const auto packet = lane->Receive(kMaxAnswerBytes);
    REQUIRE_OK(packet);
    const auto answer = DecodeAnswer(*packet);
    REQUIRE_OK(answer);
    CHECK(answer->number == number);
  }
  CHECK(memory->bytes()[kSlotBytes] == 1);
  REQUIRE_OK(lane->Send(Bytes(3)));  // not a request
  const auto packet = lane->Receive(kMaxAnswerBytes);
  REQUIRE_OK(packet);
  REQUIRE_CODE(StatusOfAnswer(*DecodeAnswer(*packet)), kInvalidArgument);
  Send(kEndMessage);
  REQUIRE_OK(End());
}

TEST_CASE_METHOD(Fixture, "Memory that may change its size is refused") {
  const unsigned seals =
      GENERATE(0u, unsigned{F_SEAL_GROW | F_SEAL_SEAL}, unsigned{F_SEAL_SHRINK | F_SEAL_SEAL});
  const Descriptor memory = Memory(kLaneBytes, seals);
  NewLane(memory);
  REQUIRE_CODE(End(), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "Memory of another size, or that cannot be written, is refused") {
  const bool small = GENERATE(true, false);
  const Descriptor memory =
      small ? Memory(kLaneBytes - 4096, kAllSeals) : Memory(kLaneBytes, kAllSeals | F_SEAL_WRITE);
  NewLane(memory);
  REQUIRE_CODE(End(), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "Messages that are not understood end the session") {
  SECTION("an unknown kind") { Send('?'); }
  SECTION("a lane without descriptors") { Send(kLaneMessage); }
  SECTION("a socket of another type") {
    const auto memory = SharedMemory::Make(kLaneBytes);
    REQUIRE_OK(memory);
    REQUIRE_OK(client->SendDescriptors(Message(kLaneMessage),
                                       {&memory->descriptor(), &memory->descriptor()}));
  }
  SECTION("too many lanes") {
    const auto memory = SharedMemory::Make(kLaneBytes);
    REQUIRE_OK(memory);
    std::vector<std::unique_ptr<PacketSocket>> lanes;
    for (size_t i = 0; i <= kMaxLanes; ++i) lanes.push_back(NewLane(memory->descriptor()));
    REQUIRE_CODE(End(), kInvalidArgument);
    return;
  }
  REQUIRE_CODE(End(), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "A client that leaves, and a stop, end the session and its lanes") {
  const auto memory = SharedMemory::Make(kLaneBytes);
  REQUIRE_OK(memory);
  const auto lane = NewLane(memory->descriptor());
  SECTION("the client leaves") { client->Shutdown(); }
  SECTION("the daemon stops") {
    stopped = true;
    server->FinishReading();
  }
  REQUIRE_CODE(End(), kAborted);
  REQUIRE_CODE(lane->Receive(kMaxAnswerBytes), kAborted);
}

TEST_CASE("A client that is silent, for example because it is stopped, is disconnected") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  LocalStream client("client", Descriptor(ends[0]));
  LocalStream server("server", Descriptor(ends[1]));
  auto pair = PacketSocket::MakePair();
  REQUIRE_OK(pair);
  const auto memory = SharedMemory::Make(kLaneBytes);
  REQUIRE_OK(memory);
  REQUIRE_OK(client.SendDescriptors(Fixture::Message(kLaneMessage),
                                    {&pair->other, &memory->descriptor()}));
  std::atomic<int> alive{0};
  const Status outcome = RunLanes(
      server, [&alive] { return std::make_unique<EchoHandler>(alive); }, [] { return false; },
      std::chrono::milliseconds(1));
  CHECK(outcome.cause() == "the client was silent for too long");
  REQUIRE_CODE(outcome, kAborted);
  CHECK(alive == 0);  // so what the lanes had, such as temporary files, is released
  REQUIRE_CODE(pair->own->Receive(kMaxAnswerBytes), kAborted);
}

}  // namespace
}  // namespace siltfs::transfer
