// Each test forks a process that acts as the command. This process becomes the launcher and starts
// the daemon. The launcher passes the daemon's report to the test.
#include "store/env/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <utility>

#include "store/env/lock_holder.h"
#include "store/env/mount_table.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

std::string ReadUntilClosed(int fd) {
  std::string text;
  char bytes[512];
  ssize_t got;
  while ((got = read(fd, bytes, sizeof bytes)) > 0) text.append(bytes, static_cast<size_t>(got));
  return text;
}

void Say(int fd, const std::string& text) {
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(99);
}

struct Outcome {
  int exit_code = -1;            // of the launcher, or minus the signal that ended it
  bool daemon_was_gone = false;  // whether the daemon had exited when the launcher ended
  std::string launcher_said;
  std::string daemon_said;
};

struct DaemonSide {
  DaemonReport& report;
  int out;
  int launcher_ended;  // a pipe that the test closes after the launcher has ended

  void AwaitLauncherEnd() const { ReadUntilClosed(launcher_ended); }
};

struct Pipe {
  int ends[2];
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  void Close(int end) {
    if (ends[end] >= 0) close(std::exchange(ends[end], -1));
  }
};

Outcome RunCommand(const std::function<void(DaemonSide)>& daemon,
                   const std::function<LauncherWatch()>& make_watch = {}) {
  Pipe from_launcher, from_daemon, launcher_ended;
  const pid_t command = fork();
  REQUIRE(command >= 0);
  if (command == 0) {
    launcher_ended.Close(1);
    for (int signal : {SIGABRT, SIGSEGV, SIGTERM}) std::signal(signal, SIG_DFL);
    sigset_t termination;
    sigemptyset(&termination);
    sigaddset(&termination, SIGTERM);
    if (make_watch) sigprocmask(SIG_BLOCK, &termination, nullptr);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    auto start = BecomeDaemon(make_watch);
    if (!start.ok()) _exit(98);
    if (start->role == DaemonRole::kLauncher) {
      Say(from_launcher.ends[1], start->message);
      if (start->interrupted) Say(from_launcher.ends[1], " after SIGTERM");
      _exit(start->exit_code);
    }
    from_launcher.Close(1);
    daemon({*start->report, from_daemon.ends[1], launcher_ended.ends[0]});
    _exit(0);
  }
  from_launcher.Close(1);
  from_daemon.Close(1);
  Outcome outcome;
  outcome.launcher_said = ReadUntilClosed(from_launcher.ends[0]);
  int status = 0;
  REQUIRE(waitpid(command, &status, 0) == command);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  pollfd daemon_pipe{from_daemon.ends[0], POLLIN, 0};
  poll(&daemon_pipe, 1, 0);
  outcome.daemon_was_gone = (daemon_pipe.revents & POLLHUP) != 0;
  launcher_ended.Close(1);
  outcome.daemon_said = ReadUntilClosed(from_daemon.ends[0]);
  return outcome;
}

TEST_CASE("the launcher succeeds once the daemon is ready, and the daemon keeps running") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    if (!daemon.report.Ready().ok()) _exit(1);
    daemon.AwaitLauncherEnd();
    Say(daemon.out, "still here");
  });
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(outcome.launcher_said.empty());
  REQUIRE(outcome.daemon_said == "still here");
}

TEST_CASE("the launcher returns the message and exit code of a daemon that fails") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    daemon.report.Failure("/store: no store there", 10).IgnoreError("the test sees it");
  });
  REQUIRE(outcome.exit_code == 10);
  REQUIRE(outcome.launcher_said == "/store: no store there");
}

TEST_CASE("the launcher of a failed daemon ends after the daemon") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    daemon.report.Failure("failed", 1).IgnoreError("the test sees it");
    // Ends slowly, like a daemon that closes a store.
    for (int i = 0; i < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
  });
  REQUIRE(outcome.daemon_was_gone);
  REQUIRE(outcome.launcher_said == "failed");
}

TEST_CASE("the end of a daemon without a report is reported") {
  SECTION("by a signal") {
    Outcome outcome = RunCommand([](DaemonSide) { raise(SIGKILL); });
    REQUIRE(outcome.exit_code == 1);
    REQUIRE(outcome.launcher_said ==
            "the daemon was killed by signal 9 (Killed) before it was ready");
  }
  SECTION("by exit") {
    Outcome outcome = RunCommand([](DaemonSide) { _exit(7); });
    REQUIRE(outcome.exit_code == 1);
    REQUIRE(outcome.launcher_said == "the daemon ended with exit code 7 before it was ready");
  }
}

TEST_CASE("a message of any length is passed on, truncated to a few kilobytes") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    daemon.report.Failure(std::string(1 << 20, 'm'), 3).IgnoreError("the test sees it");
  });
  REQUIRE(outcome.exit_code == 3);
  REQUIRE(outcome.launcher_said == std::string(4'096, 'm'));
}

TEST_CASE("the launcher sees the progress of the start") {
  const auto said = std::make_shared<std::string>();
  const Outcome outcome = RunCommand(
      [](DaemonSide daemon) {
        daemon.report.Progress("metadata", 0, 0);
        daemon.report.Progress("segments", 3, uint64_t{1} << 40);
        daemon.report.Failure("failed", 5).IgnoreError("the test sees it");
      },
      [said] {
        return LauncherWatch{.progress = [said](std::string_view step, uint64_t done,
                                                uint64_t total) {
          *said +=
              std::string(step) + " " + std::to_string(done) + " " + std::to_string(total) + "\n";
          // The launcher is another process than the test. It ends with this code if all is right.
          if (*said == "metadata 0 0\nsegments 3 1099511627776\n") _exit(42);
        }};
      });
  REQUIRE(outcome.exit_code == 42);
}

TEST_CASE("the launcher passes an interruption on to the daemon, and waits for its report") {
  const Outcome outcome = RunCommand(
      [](DaemonSide daemon) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        int signal = 0;
        sigwait(&set, &signal);
        daemon.report.Failure("interrupted", 130).IgnoreError("the test sees it");
      },
      [] {
        // Blocked in the daemon from its beginning, because it inherits the mask of the test.
        return LauncherWatch{.interrupted = [] { return true; }};
      });
  REQUIRE(outcome.exit_code == 130);
  REQUIRE(outcome.launcher_said == "interrupted after SIGTERM");
}

TEST_CASE("a daemon reports once") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    Status first = daemon.report.Failure("first", 1);
    Status second = daemon.report.Failure("second", 2);
    Say(daemon.out, first.ok() && second.Is(StatusCode::kInvalidArgument) ? "once" : "twice");
  });
  REQUIRE(outcome.launcher_said == "first");
  REQUIRE(outcome.daemon_said == "once");
}

TEST_CASE("a daemon leaves session, terminal and directory when it is ready, and not before") {
  testing::TemporaryDirectory directory;
  Outcome outcome = RunCommand([&](DaemonSide daemon) {
    if (chdir(directory.path().c_str()) != 0) _exit(1);
    if (getpgrp() == getpgid(getppid())) Say(daemon.out, "group ");
    if (!daemon.report.Ready().ok()) _exit(1);
    if (getsid(0) == getpid()) Say(daemon.out, "session ");
    char where[100];
    if (getcwd(where, sizeof where) != nullptr && std::string(where) == "/")
      Say(daemon.out, "root ");
    struct stat null, standard;
    stat("/dev/null", &null);
    for (int fd : {0, 1, 2}) {
      if (fstat(fd, &standard) == 0 && standard.st_rdev == null.st_rdev)
        Say(daemon.out, std::to_string(fd));
    }
  });
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(outcome.daemon_said == "group session root 012");
}

TEST_CASE("a daemon without a launcher gets an error, not a signal") {
  Outcome outcome = RunCommand([](DaemonSide daemon) {
    std::signal(SIGPIPE, SIG_DFL);
    kill(getppid(), SIGKILL);
    daemon.AwaitLauncherEnd();
    Say(daemon.out, daemon.report.Ready().Is(StatusCode::kAborted) ? "alone" : "not alone");
  });
  REQUIRE(outcome.exit_code == -SIGKILL);
  REQUIRE(outcome.daemon_said == "alone");
}

TEST_CASE("a program started by the daemon does not keep the launcher waiting") {
  Pipe hold;
  Outcome outcome = RunCommand([&](DaemonSide daemon) {
    hold.Close(1);
    if (fork() == 0) {
      dup2(hold.ends[0], 0);
      execlp("cat", "cat", nullptr);  // lives until the test closes its end
      _exit(1);
    }
    if (!daemon.report.Ready().ok()) _exit(1);
  });
  REQUIRE(outcome.exit_code == 0);
}

TEST_CASE("a mount table is parsed, and its escapes are decoded") {
  const auto mounts = ParseMountTable(
      "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "36 28 0:53 / /mnt/with\\011tab\\134and\\012line ro master:1 propagate_from:2 - fuse.siltfs "
      "siltfs:/a\\040store rw,user_id=7,group_id=0\n"
      "\n"
      "nonsense\n"
      "1 2 0:1 / /no-separator rw\n"
      "1 2 0:1 / /trailing\\04 rw - t odd o\n"
      "1 2 8:1 /sub /end rw - tmpfs last rw");
  REQUIRE(mounts.size() == 4);
  REQUIRE(mounts[0].source == "sysfs");
  REQUIRE(mounts[0].mount_point == "/sys");
  REQUIRE(mounts[0].type == "sysfs");
  REQUIRE(mounts[1].device == "0:53");
  REQUIRE(mounts[1].source == "siltfs:/a store");
  REQUIRE(mounts[1].mount_point == "/mnt/with\ttab\\and\nline");
  REQUIRE(mounts[1].type == "fuse.siltfs");
  REQUIRE(mounts[1].mount_options == "ro");
  REQUIRE(mounts[1].file_system_options == "rw,user_id=7,group_id=0");
  REQUIRE(mounts[2].mount_point == "/trailing\\04");
  REQUIRE(mounts[3].device == "8:1");
  REQUIRE(mounts[3].mount_point == "/end");
}

TEST_CASE("an option in a list is found by its whole name") {
  CHECK(HasOption("rw,noatime", "rw"));
  CHECK(HasOption("rw,noatime", "noatime"));
  CHECK_FALSE(HasOption("rw,errors=remount-ro", "ro"));
  CHECK_FALSE(HasOption("", "ro"));
}

TEST_CASE("a number among a file system's options is found by its whole name") {
  CHECK(NumberOption("rw,user_id=1000,group_id=5", "user_id") == 1000);
  CHECK(NumberOption("rw,user_id=1000,group_id=5", "group_id") == 5);
  CHECK_FALSE(NumberOption("rw,user_id=1000", "id"));
  CHECK_FALSE(NumberOption("rw,user_id=", "user_id"));
  CHECK_FALSE(NumberOption("rw,user_id=5x", "user_id"));
  CHECK_FALSE(NumberOption("", "user_id"));
}

TEST_CASE("this machine's mount table has /proc") {
  auto mounts = ReadMountTable();
  REQUIRE_OK(mounts);
  REQUIRE(std::any_of(mounts->begin(), mounts->end(), [](const Mount& mount) {
    return mount.mount_point == "/proc" && mount.type == "proc";
  }));
}

TEST_CASE("the list of file locks is parsed") {
  const auto locks = ParseFileLocks(
      "1: POSIX  ADVISORY  WRITE 11 08:01:5 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 08:1a:123456 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 13 08:1a:123456 0 EOF\n"
      "3: FLOCK  ADVISORY\n"
      "nonsense\n");
  REQUIRE(locks.size() == 1);
  CHECK(locks[0].pid == 12);
  CHECK(locks[0].device_major == 8);
  CHECK(locks[0].device_minor == 0x1a);
  CHECK(locks[0].inode == 123456);
}

TEST_CASE("the process that holds a lock is found while it holds it") {
  testing::TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  const std::string path = directory / "lock";
  CHECK_FALSE(FindLockHolder(path));
  auto lock = env->LockFile(path);
  REQUIRE_OK(lock);
  CHECK(FindLockHolder(path) == getpid());
  lock->reset();
  CHECK_FALSE(FindLockHolder(path));
}

TEST_CASE("a process is seen running, stopped and ended") {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  CHECK(StateOfProcess(child) == ProcessState::kRunning);
  int status = 0;
  REQUIRE(kill(child, SIGSTOP) == 0);
  REQUIRE(waitpid(child, &status, WUNTRACED) == child);
  CHECK(StateOfProcess(child) == ProcessState::kStopped);
  REQUIRE(kill(child, SIGKILL) == 0);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(StateOfProcess(child) == ProcessState::kEnded);
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(StateOfProcess(child) == ProcessState::kEnded);
  CHECK_FALSE(ArgumentsOfProcess(getpid()).empty());
  CHECK(ArgumentsOfProcess(child).empty());
}

TEST_CASE("unmounting a directory without a mount fails") {
  testing::TemporaryDirectory directory;
  Status status = Unmount(directory.path(), UnmountMode::kWhenIdle);
  REQUIRE_FALSE(status.ok());
  REQUIRE(status.path() == directory.path());
  if (geteuid() == 0) {
    REQUIRE_CODE(status, kInvalidArgument);
    REQUIRE_CODE(Unmount(directory / "no", UnmountMode::kForce), kNotFound);
  } else {
    REQUIRE_CODE(status, kNotPermitted);
  }
}

TEST_CASE("the limit of open files is raised to its maximum") {
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit low{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  auto raised = RaiseFileLimit();
  rlimit after;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE_OK(raised);
  REQUIRE(*raised == before.rlim_max);
  REQUIRE(after.rlim_cur == before.rlim_max);
}

}  // namespace
}  // namespace siltfs
