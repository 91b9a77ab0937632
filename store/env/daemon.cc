#include "store/env/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "store/base/coding.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

// The encoded messages: kind, exit code, message (16-bit length). kReady or kFailure is the last
// one. The message of kProgress is the name of the step; done and total follow it.
constexpr uint8_t kReady = 1;
constexpr uint8_t kFailure = 2;
constexpr uint8_t kProgress = 3;
constexpr size_t kMaxMessage = 4096;
constexpr int kPollMilliseconds = 100;  // between two looks at LauncherWatch::interrupted

// Takes all complete messages of progress from the front of the text.
void TakeProgress(std::string& text, const LauncherWatch& watch) {
  while (!text.empty() && static_cast<uint8_t>(text[0]) == kProgress) {
    Decoder message(AsBytes(text));
    message.U8();
    message.U32();
    const std::string step(message.Text16());
    const uint64_t done = message.U64();
    const uint64_t total = message.U64();
    if (!message.ok()) return;  // the rest has not arrived
    if (watch.progress) watch.progress(step, done, total);
    text.erase(0, text.size() - message.remaining());
  }
}

// Returns the daemon's last message. Passes a request to end on to the daemon, and then sets
// `told`.
std::string ReceiveReport(pid_t child, const Descriptor& fd, const LauncherWatch& watch,
                          bool& told) {
  std::string text;
  char bytes[1024];
  while (true) {
    pollfd state{fd.get(), POLLIN, 0};
    const int ready = RetryInterrupted([&] { return poll(&state, 1, kPollMilliseconds); });
    if (!told && watch.interrupted && watch.interrupted()) {
      kill(child, SIGTERM);
      told = true;
    }
    if (ready == 0) continue;
    const ssize_t got = RetryInterrupted([&] { return recv(fd.get(), bytes, sizeof bytes, 0); });
    if (got <= 0) return text;
    text.append(bytes, static_cast<size_t>(got));
    TakeProgress(text, watch);
  }
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) {
    const char* description = sigdescr_np(WTERMSIG(status));  // null for a real-time signal
    return fmt::format("the daemon was killed by signal {} ({}) before it was ready",
                       WTERMSIG(status), description ? description : "real-time");
  }
  return fmt::format("the daemon ended with exit code {} before it was ready", WEXITSTATUS(status));
}

Result<DaemonStart> AwaitReport(pid_t child, Descriptor from_daemon, const LauncherWatch& watch) {
  DaemonStart start;
  start.role = DaemonRole::kLauncher;
  const std::string text = ReceiveReport(child, from_daemon, watch, start.interrupted);
  Decoder report(AsBytes(text));
  const uint8_t kind = report.U8();
  const auto exit_code = static_cast<int>(report.U32());
  const std::string message(report.Text16());

  if (report.Done() && kind == kReady) return start;

  // Wait for the failing daemon to exit, so that a retry does not find its locks still held.
  int status = 0;
  if (RetryInterrupted([&] { return waitpid(child, &status, 0); }) < 0) {
    return PosixError("wait for the daemon", errno);
  }
  const bool told_why = report.Done() && kind == kFailure;
  start.exit_code = told_why ? exit_code : 1;
  start.message = told_why ? message : HowItEnded(status);
  return start;
}

Status LeaveTerminal() {
  if (setsid() < 0) return PosixError("leave the session", errno);
  if (chdir("/") != 0) return PosixError("leave the working directory", errno);
  Descriptor null(RetryInterrupted([&] { return open("/dev/null", O_RDWR | O_CLOEXEC); }));
  if (!null.valid()) return PosixError("open", errno).At("/dev/null");
  std::fflush(nullptr);
  for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (RetryInterrupted([&] { return dup2(null.get(), standard); }) < 0) {
      return PosixError("leave the terminal", errno);
    }
  }
  if (null.get() <= STDERR_FILENO) null.Release();  // the descriptor is one of the three
  return Status::Ok();
}

}  // namespace

void DaemonReport::Progress(std::string_view step, uint64_t done, uint64_t total) {
  if (!to_launcher_.valid()) return;
  Encoder message;
  message.U8(kProgress).U32(0).Text16(step).U64(done).U64(total);
  // The messages are small, so the socket takes a message as a whole or not at all.
  RetryInterrupted([&] {
    return send(to_launcher_.get(), message.text().data(), message.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

Status DaemonReport::Ready() {
  SILTFS_RETURN_IF_ERROR(LeaveTerminal());
  return Send(kReady, "", 0);
}

Status DaemonReport::Failure(std::string_view message, int exit_code) {
  return Send(kFailure, message.substr(0, kMaxMessage), exit_code);
}

Status DaemonReport::Send(uint8_t kind, std::string_view message, int exit_code) {
  if (!to_launcher_.valid()) {
    return Status(StatusCode::kInvalidArgument, "the daemon has already reported");
  }
  const Descriptor once = std::move(to_launcher_);  // closing it ends the report
  Encoder report;
  report.U8(kind).U32(static_cast<uint32_t>(exit_code)).Text16(message);
  // The report has at most a few kilobytes, which fit in the socket's buffer. So one send suffices.
  ssize_t sent = RetryInterrupted(
      [&] { return send(once.get(), report.text().data(), report.size(), MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(report.size())) return Status::Ok();
  return Status(StatusCode::kAborted, "the process that started the daemon is gone");
}

Result<DaemonStart> BecomeDaemon(const std::function<LauncherWatch()>& make_watch) {
  int ends[2];
  // A socket, not a pipe: writing must not raise a signal when the launcher is gone.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return PosixError("prepare the daemon's report", errno);
  }
  Descriptor launcher_end(ends[0]), daemon_end(ends[1]);
  std::fflush(nullptr);  // or both processes would print the buffered text
  const pid_t child = fork();
  if (child < 0) return PosixError("start the daemon", errno);
  if (child > 0) {
    daemon_end.Reset();
    return AwaitReport(child, std::move(launcher_end), make_watch ? make_watch() : LauncherWatch());
  }
  launcher_end.Reset();
  DaemonStart start;
  start.role = DaemonRole::kDaemon;
  start.report = std::make_unique<DaemonReport>(std::move(daemon_end));
  return start;
}

Status MountIsBusy(const std::string& path) {
  return Status(StatusCode::kInUse,
                fmt::format("cannot unmount: a file or directory in it is in use; \"fuser -vm {}\" "
                            "shows by which processes",
                            path))
      .At(path);
}

Status Unmount(const std::string& path, UnmountMode mode) {
  const int flags = UMOUNT_NOFOLLOW | (mode == UnmountMode::kForce    ? MNT_FORCE
                                       : mode == UnmountMode::kDetach ? MNT_DETACH
                                                                      : 0);
  if (RetryInterrupted([&] { return umount2(path.c_str(), flags); }) == 0) return Status::Ok();
  if (errno == EINVAL)
    return Status(StatusCode::kInvalidArgument, "nothing is mounted there").At(path);
  if (errno == EBUSY) return MountIsBusy(path);
  return PosixError("unmount", errno).At(path);
}

Result<uint64_t> RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return PosixError("read the limit of open files", errno);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return PosixError("raise the limit of open files", errno);
  return static_cast<uint64_t>(limit.rlim_cur);
}

}  // namespace siltfs
