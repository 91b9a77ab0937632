// The contract of ReadQueue, tested with every implementation: io_uring, threads, the simulated
// device, and a queue behind a wrapping Env.
#include "store/env/read_queue.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/base/aligned_buffer.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/reserve_env.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

template <ReadMechanism mechanism>
struct OnTheMachine {
  testing::TemporaryDirectory directory;
  std::unique_ptr<Env> owned = NewPosixEnv({.reads = mechanism});
  Env& env() { return *owned; }
  std::string Path(const std::string& name) { return directory / name; }
};

struct WithUring : OnTheMachine<ReadMechanism::kUring> {
  static constexpr const char* kMechanism = "io_uring";
  // The system may refuse io_uring. In this case, these tests do nothing.
  bool Refused() {
    auto queue = env().NewReadQueue(1);
    if (!queue.ok()) WARN("no io_uring here: " << queue.status().ToString());
    return !queue.ok();
  }
};

struct WithThreads : OnTheMachine<ReadMechanism::kThreads> {
  static constexpr const char* kMechanism = "threads";
  static bool Refused() { return false; }
};

struct Simulated {
  static constexpr const char* kMechanism = "simulated";
  SimEnv sim;
  Env& env() { return sim; }
  static std::string Path(const std::string& name) { return "/" + name; }
  static bool Refused() { return false; }
};

struct BehindReserve : WithThreads {
  std::unique_ptr<SpaceReserve> reserve;
  std::unique_ptr<ReserveEnv> reserve_env;
  BehindReserve() {
    auto opened = SpaceReserve::Open(owned_env(), {.store = Path("."), .directory = Path("r")});
    REQUIRE_OK(opened);
    reserve = std::move(*opened);
    reserve_env = std::make_unique<ReserveEnv>(owned_env(), *reserve);
  }
  Env& owned_env() { return *owned; }
  Env& env() { return *reserve_env; }
};

constexpr unsigned kDepth = 8;

std::unique_ptr<ReadQueue> NewQueue(Env& env, unsigned depth = kDepth) {
  auto queue = env.NewReadQueue(depth);
  REQUIRE_OK(queue);
  return std::move(*queue);
}

Bytes RandomBytes(size_t size, uint64_t seed) {
  Bytes bytes(size);
  Random random(seed);
  random.Fill(bytes);
  return bytes;
}

// A file with this content, open for reading.
std::unique_ptr<File> FileOf(Env& env, const std::string& path, ByteView content,
                             bool direct = false) {
  auto written = env.OpenFile(path, {.mode = OpenMode::kCreate});
  REQUIRE_OK(written);
  REQUIRE_OK((*written)->Write(0, content));
  auto file = env.OpenFile(path, {.mode = OpenMode::kRead, .direct = direct});
  if (direct && file.status().Is(StatusCode::kUnsupported)) return nullptr;
  REQUIRE_OK(file);
  return std::move(*file);
}

// Whether the request succeeded and returned what File::Read returns for a file with this content.
bool IsRight(const ReadRequest& request, ByteView content) {
  if (!request.status.ok()) return false;
  const size_t expected =
      request.offset >= content.size()
          ? 0
          : std::min<size_t>(request.out.size(), content.size() - request.offset);
  return request.bytes_read == expected &&
         std::equal(
             request.out.begin(), request.out.begin() + static_cast<std::ptrdiff_t>(expected),
             content.begin() +
                 static_cast<std::ptrdiff_t>(std::min<uint64_t>(request.offset, content.size())));
}

#define READ_QUEUE_TEST(name) \
  TEMPLATE_TEST_CASE(name, "[read_queue]", WithUring, WithThreads, Simulated, BehindReserve)

READ_QUEUE_TEST("the requested mechanism is the one that runs") {
  TestType at;
  if (at.Refused()) return;
  REQUIRE(NewQueue(at.env())->mechanism() == TestType::kMechanism);
}

READ_QUEUE_TEST("many more requests than the depth all get their bytes, batch after batch") {
  TestType at;
  if (at.Refused()) return;
  const Bytes first_content = RandomBytes(300'000, 1);
  const Bytes second_content = RandomBytes(70'001, 2);
  const auto first = FileOf(at.env(), at.Path("first"), first_content);
  const auto second = FileOf(at.env(), at.Path("second"), second_content);
  Random random(3);
  for (const unsigned depth : {1U, 3U, kDepth, 64U}) {
    const auto queue = NewQueue(at.env(), depth);
    for (const size_t count : {1U, 2U, 500U, 7U}) {
      std::vector<Bytes> buffers(count);
      std::vector<ReadRequest> requests(count);
      for (size_t i = 0; i < count; ++i) {
        buffers[i].resize(random.Below(9'000));
        requests[i] = {.file = random.Below(2) == 0 ? first.get() : second.get(),
                       .offset = random.Below(310'000),
                       .out = buffers[i]};
      }
      queue->ReadAll(requests);
      INFO("depth " << depth << ", " << count << " requests");
      REQUIRE(std::all_of(requests.begin(), requests.end(), [&](const ReadRequest& request) {
        return IsRight(request, request.file == first.get() ? first_content : second_content);
      }));
    }
    REQUIRE(queue->mechanism() == TestType::kMechanism);
  }
}

READ_QUEUE_TEST("a batch without requests returns at once") {
  TestType at;
  if (at.Refused()) return;
  NewQueue(at.env())->ReadAll({});
}

READ_QUEUE_TEST("requests are short at the file's end and empty beyond it") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(10'000, 4);
  const auto file = FileOf(at.env(), at.Path("f"), content);
  Bytes buffer(4 * 4'096);
  const auto part = [&](size_t n) { return MutableByteView(buffer).subspan(n * 4'096, 4'096); };
  std::vector<ReadRequest> requests = {{.file = file.get(), .offset = 9'999, .out = part(0)},
                                       {.file = file.get(), .offset = 10'000, .out = part(1)},
                                       {.file = file.get(), .offset = 1 << 30, .out = part(2)},
                                       {.file = file.get(), .offset = 5'904, .out = part(3)},
                                       {.file = file.get(), .offset = 5, .out = {}}};
  NewQueue(at.env())->ReadAll(requests);
  for (const ReadRequest& request : requests) {
    INFO(request.offset << ": " << request.bytes_read);
    REQUIRE(IsRight(request, content));
  }
  REQUIRE(requests[0].bytes_read == 1);
  REQUIRE(requests[3].bytes_read == 4'096);
}

READ_QUEUE_TEST("a long read is complete, whatever other reads are in its batch") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(5'000'000, 5);
  const auto file = FileOf(at.env(), at.Path("f"), content);
  Bytes whole(6'000'000), middle(2'500'000), page(4'096);
  std::vector<ReadRequest> requests = {{.file = file.get(), .offset = 0, .out = whole},
                                       {.file = file.get(), .offset = 1'000'001, .out = middle},
                                       {.file = file.get(), .offset = 4'096, .out = page}};
  NewQueue(at.env(), 2)->ReadAll(requests);
  for (const ReadRequest& request : requests) REQUIRE(IsRight(request, content));
}

READ_QUEUE_TEST("a failed request does not affect others, and its status has place and cause") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(100'000, 6);
  const auto good = FileOf(at.env(), at.Path("good"), content);
  const auto closed = FileOf(at.env(), at.Path("closed"), content);
  REQUIRE_OK(closed->Close());
  std::vector<Bytes> buffers(60, Bytes(1'000));
  std::vector<ReadRequest> requests(buffers.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i] = {
        .file = i % 7 == 3 ? closed.get() : good.get(), .offset = i * 1'000, .out = buffers[i]};
  }
  NewQueue(at.env())->ReadAll(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO(i);
    if (i % 7 == 3) {
      REQUIRE_CODE(requests[i].status, kInvalidArgument);
      REQUIRE(requests[i].status.path() == at.Path("closed"));
      REQUIRE(requests[i].status.offset() == i * 1'000);
      REQUIRE(requests[i].bytes_read == 0);
    } else {
      REQUIRE(IsRight(requests[i], content));
    }
  }
}

READ_QUEUE_TEST(
    "a missing file and a file of another Env are refused, and the other files are read") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(10'000, 7);
  const auto own = FileOf(at.env(), at.Path("f"), content);
  SimEnv other_device;
  testing::TemporaryDirectory directory;
  const auto machine = NewPosixEnv();
  const bool simulated = std::string_view(TestType::kMechanism) == "simulated";
  const auto foreign =
      simulated ? FileOf(*machine, directory / "f", content) : FileOf(other_device, "/f", content);
  const auto other_sim = FileOf(other_device, "/g", content);
  std::vector<Bytes> buffers(5, Bytes(100));
  std::vector<ReadRequest> requests = {
      {.file = foreign.get(), .offset = 0, .out = buffers[0]},
      {.file = own.get(), .offset = 50, .out = buffers[1]},
      {.file = nullptr, .offset = 0, .out = buffers[2]},
      {.file = other_sim.get(), .offset = 0, .out = buffers[3]},
      {.file = own.get(), .offset = 9'950, .out = buffers[4]},
  };
  NewQueue(at.env())->ReadAll(requests);
  for (const size_t i : {0, 2, 3}) {
    INFO(i);
    REQUIRE_CODE(requests[i].status, kInvalidArgument);
    REQUIRE(requests[i].bytes_read == 0);
  }
  REQUIRE(IsRight(requests[1], content));
  REQUIRE(IsRight(requests[4], content));
}

READ_QUEUE_TEST("an offset beyond the largest is refused, not taken for the current position") {
  TestType at;
  if (at.Refused()) return;
  const auto file = FileOf(at.env(), at.Path("f"), RandomBytes(10'000, 8));
  std::vector<Bytes> buffers(4, Bytes(100));
  std::vector<ReadRequest> requests = {
      {.file = file.get(), .offset = UINT64_MAX, .out = buffers[0]},
      {.file = file.get(), .offset = uint64_t{1} << 63, .out = buffers[1]},
      {.file = file.get(), .offset = INT64_MAX - 99, .out = buffers[2]},
  };
  NewQueue(at.env())->ReadAll(requests);
  for (const ReadRequest& request : requests) {
    REQUIRE_CODE(request.status, kInvalidArgument);
    REQUIRE(request.status.path() == at.Path("f"));
  }
}

READ_QUEUE_TEST("requests can be reused after any outcome") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(10'000, 9);
  const auto file = FileOf(at.env(), at.Path("f"), content);
  const auto queue = NewQueue(at.env());
  Bytes first(100), second(100);
  std::vector<ReadRequest> requests = {{.file = nullptr, .offset = 0, .out = first},
                                       {.file = file.get(), .offset = 9'990, .out = second}};
  queue->ReadAll(requests);
  requests[0].file = file.get();
  requests[1].offset = 200;
  queue->ReadAll(requests);
  for (const ReadRequest& request : requests) REQUIRE(IsRight(request, content));
}

READ_QUEUE_TEST("direct reads are whole, short at an end within a page, and refused if unaligned") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(40 * 4'096 + 5, 10);
  const auto file = FileOf(at.env(), at.Path("f"), content, true);
  if (file == nullptr) return;  // the disk does not support direct access, as the contract allows
  AlignedBuffer buffer(41 * 4'096);
  std::vector<ReadRequest> requests;
  for (uint64_t page = 0; page < 41; ++page) {
    requests.push_back({.file = file.get(),
                        .offset = (40 - page) * 4'096,
                        .out = buffer.view().subspan(page * 4'096, 4'096)});
  }
  const auto queue = NewQueue(at.env());
  queue->ReadAll(requests);
  for (const ReadRequest& request : requests) {
    INFO(request.offset << " " << request.status.ToString());
    REQUIRE(IsRight(request, content));
  }
  std::vector<ReadRequest> mixed = {
      {.file = file.get(), .offset = 4'096, .out = buffer.view().subspan(0, 4'096)},
      {.file = file.get(), .offset = 100, .out = buffer.view().subspan(4'096, 4'096)},
      {.file = file.get(), .offset = 39 * 4'096, .out = buffer.view().subspan(8'192, 16'384)}};
  queue->ReadAll(mixed);
  REQUIRE(IsRight(mixed[0], content));
  REQUIRE_CODE(mixed[1].status, kInvalidArgument);
  REQUIRE(IsRight(mixed[2], content));
}

READ_QUEUE_TEST("several queues read the same file concurrently") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(200'000, 11);
  const auto file = FileOf(at.env(), at.Path("f"), content);
  std::atomic<int> right = 0;
  std::vector<std::unique_ptr<ReadQueue>> queues;
  for (int t = 0; t < 4; ++t) queues.push_back(NewQueue(at.env()));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < queues.size(); ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::vector<Bytes> buffers(50, Bytes(3'000));
      std::vector<ReadRequest> requests(buffers.size());
      for (int round = 0; round < 10; ++round) {
        for (size_t i = 0; i < requests.size(); ++i) {
          requests[i] = {.file = file.get(), .offset = random.Below(201'000), .out = buffers[i]};
        }
        queues[t]->ReadAll(requests);
        for (const ReadRequest& request : requests) {
          if (IsRight(request, content)) ++right;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(right == 4 * 10 * 50);
}

READ_QUEUE_TEST("a queue can move from one thread to another") {
  TestType at;
  if (at.Refused()) return;
  const Bytes content = RandomBytes(100'000, 12);
  const auto file = FileOf(at.env(), at.Path("f"), content);
  std::unique_ptr<ReadQueue> queue;
  int right = 0;
  for (int t = 0; t < 3; ++t) {
    std::thread([&] {
      if (queue == nullptr) {
        auto made = at.env().NewReadQueue(4);
        if (!made.ok()) return;
        queue = std::move(*made);
      }
      std::vector<Bytes> buffers(20, Bytes(3'000));
      std::vector<ReadRequest> requests;
      for (Bytes& buffer : buffers) {
        requests.push_back({.file = file.get(), .offset = requests.size() * 3'000, .out = buffer});
      }
      queue->ReadAll(requests);
      for (const ReadRequest& request : requests) right += IsRight(request, content) ? 1 : 0;
    }).join();
  }
  REQUIRE(right == 60);
}

READ_QUEUE_TEST("a depth of 0 or above the maximum is refused") {
  TestType at;
  REQUIRE_CODE(at.env().NewReadQueue(0), kInvalidArgument);
  REQUIRE_CODE(at.env().NewReadQueue(ReadQueue::kMaxDepth + 1), kInvalidArgument);
}

TEST_CASE("on the simulated device each request is a call that can fail") {
  const Bytes content = RandomBytes(10'000, 13);
  for (uint64_t nth = 1; nth <= 5; ++nth) {
    SimEnv env;
    const auto file = FileOf(env, "/f", content);
    const auto queue = NewQueue(env);
    std::vector<Bytes> buffers(5, Bytes(1'000));
    std::vector<ReadRequest> requests;
    for (Bytes& buffer : buffers) {
      requests.push_back({.file = file.get(), .offset = requests.size() * 1'000, .out = buffer});
    }
    const uint64_t before = env.Calls(SimCall::kRead);
    env.FailCall({.calls = SimCall::kRead, .nth = nth});
    queue->ReadAll(requests);
    REQUIRE(env.Calls(SimCall::kRead) - before == 5);
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO(nth << " " << i);
      if (i + 1 == nth) {
        REQUIRE_CODE(requests[i].status, kIoError);
      } else {
        REQUIRE(IsRight(requests[i], content));
      }
    }
  }
}

TEST_CASE("an aligned buffer has whole zeroed pages and can be moved") {
  AlignedBuffer buffer(5'000);
  REQUIRE(buffer.size() == 8'192);
  REQUIRE(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment == 0);
  REQUIRE(std::count(buffer.view().begin(), buffer.view().end(), 0) == 8'192);
  buffer.view()[8'191] = 7;
  AlignedBuffer moved(std::move(buffer));
  REQUIRE(moved.view()[8'191] == 7);
  REQUIRE(buffer.size() == 0);  // NOLINT(bugprone-use-after-move): tested here
  buffer = AlignedBuffer(1);
  REQUIRE(buffer.size() == 4'096);
  REQUIRE(AlignedBuffer(0).size() == 0);
}

}  // namespace
}  // namespace siltfs
