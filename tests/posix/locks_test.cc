// Locks between processes: POSIX record locks, open file description locks, lockf and flock.
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct flock Range(short type, off_t start = 0, off_t length = 0) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = start;
  range.l_len = length;
  return range;
}

int Lock(int fd, int command, short type, off_t start = 0, off_t length = 0) {
  struct flock range = Range(type, start, length);
  return Outcome(fcntl(fd, command, &range));
}

struct LockedFile : OnTheFileSystem {
  Descriptor file{Path("file"), O_RDWR | O_CREAT};
  std::string path = Path("file");

  // Lets another process try to take the lock without waiting, and returns its result.
  int Elsewhere(int command, short type, off_t start = 0, off_t length = 0) const {
    return InChild([&] {
      const Descriptor own(path, O_RDWR);
      return Lock(own.get(), command, type, start, length);
    });
  }
  int FlockElsewhere(int operation) const {
    return InChild([&] {
      const Descriptor own(path, O_RDWR);
      return Outcome(flock(own.get(), operation | LOCK_NB));
    });
  }
  // Another process waits for a lock in `take`. It must get the lock when `release` is called, and
  // not before.
  void CheckWaits(const std::function<int(int fd)>& take, const std::function<void()>& release) {
    Gate ready;
    auto* released = static_cast<volatile char*>(
        mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ChildProcess waiter([&] {
      const Descriptor own(path, O_RDWR);
      ready.Open();
      if (take(own.get()) != 0) return 2;
      return *released == 1 ? 0 : 1;
    });
    ready.Pass();
    CHECK(waiter.BlocksInTheKernel());
    *released = 1;
    release();
    CHECK(waiter.Wait() == 0);
  }
};

TEST_CASE_METHOD(LockedFile, "A record lock keeps others out of its range only") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK, 100, 50) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 100, 50) == EAGAIN);
  CHECK(Elsewhere(F_SETLK, F_RDLCK, 149, 1) == EAGAIN);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 0, 0) == EAGAIN);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 0, 100) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 150, 0) == 0);
  REQUIRE(Lock(file.get(), F_SETLK, F_UNLCK, 120, 10) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 120, 10) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 119, 1) == EAGAIN);
}

TEST_CASE_METHOD(LockedFile, "Readers share a record lock, writers do not") {
  REQUIRE(Lock(file.get(), F_SETLK, F_RDLCK) == 0);
  CHECK(Elsewhere(F_SETLK, F_RDLCK) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK) == EAGAIN);
}

TEST_CASE_METHOD(LockedFile, "F_GETLK reports the holder of a record lock") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK, 10, 20) == 0);
  const pid_t holder = getpid();
  CHECK(InChild([&] {
          const Descriptor own(path, O_RDWR);
          struct flock range = Range(F_WRLCK);
          if (fcntl(own.get(), F_GETLK, &range) != 0) return 1;
          if (range.l_type != F_WRLCK || range.l_start != 10 || range.l_len != 20) return 2;
          return range.l_pid == holder ? 0 : 3;
        }) == 0);
}

TEST_CASE_METHOD(LockedFile, "Closing any descriptor of the file drops a process's record locks") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK) == 0);
  Descriptor(path, O_RDONLY).Close();
  CHECK(Elsewhere(F_SETLK, F_WRLCK) == 0);
}

TEST_CASE_METHOD(LockedFile, "A process that is killed leaves no lock behind") {
  Gate locked;
  ChildProcess holder([&] {
    const Descriptor own(path, O_RDWR);
    if (Lock(own.get(), F_SETLK, F_WRLCK) != 0 || flock(own.get(), LOCK_EX) != 0) return 1;
    locked.Open();
    pause();
    return 0;
  });
  locked.Pass();
  CHECK(Lock(file.get(), F_SETLK, F_WRLCK) == EAGAIN);
  CHECK(Outcome(flock(file.get(), LOCK_EX | LOCK_NB)) == EWOULDBLOCK);
  holder.Kill();
  CHECK(Lock(file.get(), F_SETLK, F_WRLCK) == 0);
  CHECK(Outcome(flock(file.get(), LOCK_EX | LOCK_NB)) == 0);
}

TEST_CASE_METHOD(LockedFile, "A waiter gets a record lock when it is released") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK, 5, 10) == 0);
  CheckWaits([](int fd) { return Lock(fd, F_SETLKW, F_RDLCK, 0, 6); },
             [&] { REQUIRE(Lock(file.get(), F_SETLK, F_UNLCK) == 0); });
}

TEST_CASE_METHOD(LockedFile, "A deadlock of two processes is detected") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK, 0, 1) == 0);
  Gate locked;
  ChildProcess other([&] {
    const Descriptor own(path, O_RDWR);
    if (Lock(own.get(), F_SETLK, F_WRLCK, 1, 1) != 0) return 1;
    locked.Open();
    return Lock(own.get(), F_SETLKW, F_WRLCK, 0, 1);
  });
  locked.Pass();
  REQUIRE(other.BlocksInTheKernel());
  CHECK(Lock(file.get(), F_SETLKW, F_WRLCK, 1, 1) == EDEADLK);
  REQUIRE(Lock(file.get(), F_SETLK, F_UNLCK) == 0);
  CHECK(other.Wait() == 0);
}

TEST_CASE_METHOD(LockedFile, "A lock of an open file description belongs to the description") {
  const Descriptor other(path, O_RDWR);
  REQUIRE(Lock(file.get(), F_OFD_SETLK, F_WRLCK, 0, 10) == 0);
  CHECK(Lock(other.get(), F_OFD_SETLK, F_WRLCK, 5, 10) == EAGAIN);
  CHECK(Lock(other.get(), F_OFD_SETLK, F_WRLCK, 10, 10) == 0);
  CHECK(Elsewhere(F_SETLK, F_WRLCK, 0, 1) == EAGAIN);
  Descriptor(path, O_RDONLY).Close();  // does not affect other descriptions
  CHECK(Lock(other.get(), F_OFD_SETLK, F_WRLCK, 5, 10) == EAGAIN);
  CheckWaits([](int fd) { return Lock(fd, F_OFD_SETLKW, F_WRLCK, 0, 10); },
             [&] { REQUIRE(Lock(file.get(), F_OFD_SETLK, F_UNLCK) == 0); });
}

TEST_CASE_METHOD(LockedFile, "lockf locks from the position on") {
  REQUIRE(lseek(file.get(), 100, SEEK_SET) == 100);
  REQUIRE(Outcome(lockf(file.get(), F_TLOCK, 10)) == 0);
  const auto test = [this](off_t position) {
    return InChild([&] {
      const Descriptor own(path, O_RDWR);
      lseek(own.get(), position, SEEK_SET);
      return Outcome(lockf(own.get(), F_TEST, 1));
    });
  };
  CHECK(test(99) == 0);
  CHECK((test(100) == EACCES || test(100) == EAGAIN));
  CHECK(test(110) == 0);
  CheckWaits(
      [](int fd) {
        lseek(fd, 100, SEEK_SET);
        return Outcome(lockf(fd, F_LOCK, 1));
      },
      [&] { REQUIRE(Outcome(lockf(file.get(), F_ULOCK, 10)) == 0); });
}

TEST_CASE_METHOD(LockedFile, "flock is shared or exclusive, per open file description") {
  const Descriptor other(path, O_RDWR);
  REQUIRE(Outcome(flock(file.get(), LOCK_SH)) == 0);
  CHECK(Outcome(flock(other.get(), LOCK_SH | LOCK_NB)) == 0);
  CHECK(FlockElsewhere(LOCK_SH) == 0);
  CHECK(FlockElsewhere(LOCK_EX) == EWOULDBLOCK);
  REQUIRE(Outcome(flock(other.get(), LOCK_UN)) == 0);
  REQUIRE(Outcome(flock(file.get(), LOCK_EX | LOCK_NB)) == 0);
  CHECK(FlockElsewhere(LOCK_SH) == EWOULDBLOCK);
  CHECK(Outcome(flock(other.get(), LOCK_SH | LOCK_NB)) == EWOULDBLOCK);
}

TEST_CASE_METHOD(LockedFile, "A waiter in flock continues when the last descriptor is closed") {
  REQUIRE(Outcome(flock(file.get(), LOCK_EX)) == 0);
  const int copy = dup(file.get());
  REQUIRE(file.Close() == 0);
  CHECK(FlockElsewhere(LOCK_SH) == EWOULDBLOCK);
  CheckWaits(
      [copy](int fd) {
        close(copy);  // the child has inherited it
        return Outcome(flock(fd, LOCK_EX));
      },
      [copy] { close(copy); });
}

TEST_CASE_METHOD(LockedFile, "A wait for a lock can be interrupted") {
  REQUIRE(Lock(file.get(), F_SETLK, F_WRLCK) == 0);
  REQUIRE(Outcome(flock(file.get(), LOCK_EX)) == 0);
  for (const bool record : {true, false}) {
    Gate ready;
    ChildProcess waiter([&] {
      struct sigaction action = {};
      action.sa_handler = [](int) {};  // without SA_RESTART
      sigaction(SIGUSR1, &action, nullptr);
      const Descriptor own(path, O_RDWR);
      ready.Open();
      return record ? Lock(own.get(), F_SETLKW, F_WRLCK) : Outcome(flock(own.get(), LOCK_EX));
    });
    ready.Pass();
    REQUIRE(waiter.BlocksInTheKernel());
    kill(waiter.pid(), SIGUSR1);
    CHECK(waiter.Wait() == EINTR);
  }
}

}  // namespace
}  // namespace siltfs::testing
