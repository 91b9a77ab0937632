#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/posix_signals.h"
#include "store/env/process.h"

namespace siltfs {
namespace {

class BlockedSignals final : public TerminationSignals {
 public:
  BlockedSignals(const sigset_t& before, Descriptor signals, Descriptor cancelled)
      : before_(before), signals_(std::move(signals)), cancelled_(std::move(cancelled)) {}

  // Drops pending signals, which would end the process if they were delivered now.
  ~BlockedSignals() override {
    signalfd_siginfo info = {};
    while (Pending() && read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  std::optional<int> Wait() override {
    pollfd polled[2] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = cancelled_.get(), .events = POLLIN, .revents = 0}};
    while (true) {
      if (RetryInterrupted([&] { return poll(polled, 2, -1); }) < 0) return std::nullopt;
      if (polled[1].revents != 0) return std::nullopt;
      signalfd_siginfo info = {};
      if (read(signals_.get(), &info, sizeof info) == sizeof info) {
        return static_cast<int>(info.ssi_signo);
      }
    }
  }

  bool Pending() final {
    pollfd polled{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    return poll(&polled, 1, 0) > 0;
  }
  void Request() override { kill(getpid(), SIGTERM); }
  void Cancel() override { eventfd_write(cancelled_.get(), 1); }

 private:
  const sigset_t before_;
  const Descriptor signals_;
  const Descriptor cancelled_;
};

// Reads a file of /proc without knowing its size. Empty if it cannot be read.
std::string ReadProc(int64_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const Descriptor file(RetryInterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  std::string text;
  char bytes[4096];
  while (file.valid()) {
    const ssize_t got = RetryInterrupted([&] { return read(file.get(), bytes, sizeof bytes); });
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

Status OccupyStandardDescriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // open returns the lowest free number, which is `standard`. The descriptor is read-only, so
    // writes fail as on a closed one. O_PATH works without /dev, but then reads fail, too.
    int opened = RetryInterrupted([] { return open("/dev/null", O_RDONLY); });
    if (opened < 0) opened = RetryInterrupted([] { return open("/", O_PATH); });
    if (opened != standard) {
      return PosixError("occupy descriptor " + std::to_string(standard),
                        opened < 0 ? errno : EBADF);
    }
  }
  return Status::Ok();
}

ProcessState StateOfProcess(int64_t pid) {
  const std::string stat = ReadProc(pid, "stat");
  // The program's name, in parentheses, may hold any character.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) {
    const bool none = kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    return none ? ProcessState::kEnded : ProcessState::kUnknown;
  }
  switch (stat[name_end + 2]) {
    case 'T':
    case 't':
      return ProcessState::kStopped;
    case 'Z':
    case 'X':
      return ProcessState::kEnded;
    default:
      return ProcessState::kRunning;
  }
}

std::vector<std::string> ArgumentsOfProcess(int64_t pid) {
  std::vector<std::string> arguments;
  const std::string text = ReadProc(pid, "cmdline");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

int64_t CurrentProcessId() { return getpid(); }

uint32_t CurrentUserId() { return geteuid(); }

FileOwner RealOwner() { return {.uid = getuid(), .gid = getgid()}; }

void RunWhenIdle() {
  // From linux/ioprio.h; the C library has no wrapper.
  constexpr int kThisThread = 0;
  constexpr int kWhoProcess = 1;
  constexpr int kIdleClass = 3 << 13;
  const sched_param none{};
  sched_setscheduler(kThisThread, SCHED_IDLE, &none);
  syscall(SYS_ioprio_set, kWhoProcess, kThisThread, kIdleClass);
}

void IgnoreStatusRequests() { signal(SIGUSR1, SIG_IGN); }

bool StandardErrorIsTerminal() { return isatty(STDERR_FILENO) != 0; }

Status WriteToDescriptor(int descriptor, std::string_view text) {
  while (true) {
    const ssize_t written =
        RetryInterrupted([&] { return write(descriptor, text.data(), text.size()); });
    if (written < 0 && errno == EBADF) {
      return Status(StatusCode::kInvalidArgument,
                    "there is no open descriptor " + std::to_string(descriptor));
    }
    if (written < 0) return PosixError("write to descriptor " + std::to_string(descriptor), errno);
    text.remove_prefix(static_cast<size_t>(written));
    if (text.empty()) return Status::Ok();
  }
}

std::string TemporaryDirectory() {
  const char* const place = std::getenv("TMPDIR");
  return place != nullptr && *place != '\0' ? place : "/var/tmp";
}

void PrepareForStore() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);  // on failure, opening too many files reports an error later
  }
#if defined(__GLIBC__)
  // Request and block buffers stay on the heap: mapping each again costs a page fault per 4 KiB, a
  // third of the time of a first backup. The index's merge buffers are larger and return to the
  // system. (Setting any of these thresholds disables their automatic adaptation.)
  mallopt(M_MMAP_THRESHOLD, 2 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
  // Each arena may keep as much free memory as these thresholds allow, so limit the number of
  // arenas.
  mallopt(M_ARENA_MAX, static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2U, 4U)));
#endif
}

Result<std::unique_ptr<TerminationSignals>> TerminationSignals::Block() {
  const sigset_t set = TerminationSet();
  Descriptor signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return PosixError("wait for signals", errno);
  Descriptor cancelled(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancelled.valid()) return PosixError("make an event", errno);
  sigset_t before;
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, &before); error != 0) {
    return PosixError("block signals", error);
  }
  return std::unique_ptr<TerminationSignals>(
      new BlockedSignals(before, std::move(signals), std::move(cancelled)));
}

void WaitForProcessEnd(int64_t pid, std::chrono::milliseconds timeout) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!process.valid()) return;
  pollfd polled = {.fd = process.get(), .events = POLLIN, .revents = 0};
  RetryInterrupted([&] { return poll(&polled, 1, static_cast<int>(timeout.count())); });
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace siltfs
