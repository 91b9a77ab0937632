// What a command needs that turns itself into a daemon: the fork and its outcome, unmounting, and
// the limit of open files. What is printed is the caller's business.
//
//   SILTFS_ASSIGN_OR_RETURN(DaemonStart start, BecomeDaemon());
//   if (start.role == DaemonRole::kLauncher) return say(start.message), start.exit_code;
//   ... the daemon: mount, then start.report->Ready(), or start.report->Failure("PATH: why not", 1)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

enum class DaemonRole : uint8_t {
  kLauncher,  // the process that was started: the daemon has reported, or has died
  kDaemon,    // its child, in a session of its own
};

// The daemon's one word to its launcher. Destroyed without a word, the launcher takes it that the
// daemon is failing and reports how it ended.
class DaemonReport {
 public:
  explicit DaemonReport(Descriptor to_launcher) : to_launcher_(std::move(to_launcher)) {}

  // Leaves the working directory and the terminal (standard input, output and error become
  // /dev/null), then lets the launcher end with 0. kAborted if the launcher is gone: nobody learns
  // of the daemon, which may well go too.
  Status Ready();
  // Lets the launcher end with this message and exit code, once this process has ended: to be said
  // last.
  Status Failure(std::string_view message, int exit_code);

 private:
  Status Send(uint8_t kind, std::string_view message, int exit_code);

  Descriptor to_launcher_;
};

struct DaemonStart {
  DaemonRole role = DaemonRole::kDaemon;
  // The launcher's:
  int exit_code = 0;
  std::string message;  // one sentence, empty when the daemon is ready
  // The daemon's, otherwise null:
  std::unique_ptr<DaemonReport> report;
};

// Forks: returns twice, in the launcher only once the daemon has reported or died. Must be called
// before there are threads. Relative paths hold until DaemonReport::Ready.
Result<DaemonStart> BecomeDaemon();

enum class UnmountMode : uint8_t {
  kWhenIdle,  // kInUse while anything on it is open
  kForce,     // MNT_FORCE: open files lose their connection
};

// Never lazily: when it returned OK nothing is mounted there any more by this mount.
// kInvalidArgument if nothing was, kNotPermitted for users other than root. Does not follow a
// symbolic link at `path`.
Status Unmount(const std::string& path, UnmountMode mode);
// kInUse, with what to do about it.
Status MountIsBusy(const std::string& path);

// Lets this process open as many files as it may; returns how many.
Result<uint64_t> RaiseFileLimit();

}  // namespace siltfs
