// Tests reads when the system refuses io_uring, as containers do. It may refuse the setup of a
// ring, or every later call on the ring.
#include <errno.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/refused_call.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

struct Reads {
  testing::TemporaryDirectory directory;
  std::unique_ptr<Env> env = NewPosixEnv();
  std::unique_ptr<File> file;
  std::vector<Bytes> buffers = std::vector<Bytes>(40, Bytes(500));
  std::vector<ReadRequest> requests;

  Reads() {
    auto made = env->OpenFile(directory / "f", {.mode = OpenMode::kCreate});
    REQUIRE_OK(made);
    file = std::move(*made);
    Again();
    for (size_t i = 0; i < buffers.size(); ++i)
      REQUIRE_OK(file->Write(i * 500, Bytes(500, static_cast<uint8_t>(i + 1))));
  }
  void Again() {
    requests.clear();
    for (Bytes& buffer : buffers) {
      std::fill(buffer.begin(), buffer.end(), 0);
      requests.push_back({.file = file.get(), .offset = requests.size() * 500, .out = buffer});
    }
  }
  bool AllRight() const {
    for (size_t i = 0; i < requests.size(); ++i) {
      const bool right = requests[i].status.ok() && requests[i].bytes_read == 500 &&
                         buffers[i] == Bytes(500, static_cast<uint8_t>(i + 1));
      if (!right) return false;
    }
    return true;
  }
};

TEST_CASE("if io_uring is refused, threads read") {
  for (const unsigned error : {EPERM, ENOSYS, ENOMEM}) {
    INFO("error number " << error);
    Reads reads;
    bool filtered = false, right = false, uring_alone = true;
    std::string mechanism;
    std::thread([&] {
      filtered = testing::RefuseCall(SYS_io_uring_setup, error);
      auto queue = reads.env->NewReadQueue(8);
      if (!queue.ok()) return;
      mechanism = (*queue)->mechanism();
      (*queue)->ReadAll(reads.requests);
      right = reads.AllRight();
      uring_alone = NewPosixEnv({.reads = ReadMechanism::kUring})->NewReadQueue(8).ok();
    }).join();
    if (!filtered) return;  // filters are refused here
    REQUIRE(mechanism == "threads");
    REQUIRE(right);
    REQUIRE_FALSE(uring_alone);
  }
}

TEST_CASE("no read is lost if the system refuses the calls on a ring after its setup") {
  for (const unsigned error : {EPERM, EAGAIN, ENOMEM}) {
    INFO("error number " << error);
    Reads reads;
    auto queue = NewPosixEnv({.reads = ReadMechanism::kUring})->NewReadQueue(8);
    if (!queue.ok()) return;  // no io_uring here
    bool filtered = false, first = false, second = false;
    (*queue)->ReadAll(reads.requests);
    REQUIRE(reads.AllRight());
    std::thread([&] {
      filtered = testing::RefuseCall(SYS_io_uring_enter, error);
      reads.Again();
      (*queue)->ReadAll(reads.requests);
      first = reads.AllRight();
      reads.Again();
      (*queue)->ReadAll(reads.requests);
      second = reads.AllRight();
    }).join();
    if (!filtered) return;
    REQUIRE(first);
    REQUIRE(second);
    REQUIRE((*queue)->mechanism() == "one by one");
  }
}

}  // namespace
}  // namespace siltfs
