// Helpers for a command that becomes a daemon: the fork and its outcome, unmounting, and the limit
// of open files. The caller prints all messages.
//
//   SILTFS_ASSIGN_OR_RETURN(DaemonStart start, BecomeDaemon());
//   if (start.role == DaemonRole::kLauncher) return say(start.message), start.exit_code;
//   ... the daemon: mount, then start.report->Ready(), or start.report->Failure("PATH: why not", 1)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

enum class DaemonRole : uint8_t {
  kLauncher,  // the original process: the daemon has reported or exited
  kDaemon,    // its child
};

// The daemon's report to its launcher. If this object is destroyed before the report is
// sent, the launcher treats the start as failed and reports how the daemon ended.
class DaemonReport {
 public:
  explicit DaemonReport(Descriptor to_launcher) : to_launcher_(std::move(to_launcher)) {}

  // Tells the launcher how far the start is: `done` of `total` (0: not known) of what `step` names.
  // Does nothing if the launcher is gone or does not take it at once. Not at the same time as
  // another call.
  void Progress(std::string_view step, uint64_t done, uint64_t total);
  // Leaves the session, the working directory and the terminal (standard input, output and error
  // become /dev/null), then lets the launcher end with 0. kAborted if the launcher is gone. In that
  // case its user never learns of the daemon, so the daemon may exit, too.
  Status Ready();
  // Lets the launcher end with this message and exit code, as soon as this process has ended. Do
  // not use the object after this call.
  Status Failure(std::string_view message, int exit_code);

 private:
  Status Send(uint8_t kind, std::string_view message, int exit_code);

  Descriptor to_launcher_;
};

struct DaemonStart {
  DaemonRole role = DaemonRole::kDaemon;
  // For the launcher:
  int exit_code = 0;
  std::string message;       // one sentence, empty when the daemon is ready
  bool interrupted = false;  // the daemon got SIGTERM, because LauncherWatch::interrupted was true
  // For the daemon, otherwise null:
  std::unique_ptr<DaemonReport> report;
};

// How the launcher waits for the daemon.
struct LauncherWatch {
  // Called with each DaemonReport::Progress; may be empty.
  std::function<void(std::string_view step, uint64_t done, uint64_t total)> progress = {};
  // Polled. Once it has returned true, the daemon gets SIGTERM. May be empty.
  std::function<bool()> interrupted = {};
};

// Forks, and returns in both processes. `make_watch` is called in the launcher, after the fork; it
// may start threads. In the launcher it returns only after the daemon has
// reported or exited. Must be called before threads are started. Relative paths stay valid until
// DaemonReport::Ready.
//
// Until then the daemon also stays in the launcher's process group. If systemd mounts on the first
// access (autofs), it waits for the mount, and lets only this group reach the mountpoint before.
Result<DaemonStart> BecomeDaemon(const std::function<LauncherWatch()>& make_watch = {});

enum class UnmountMode : uint8_t {
  kWhenIdle,  // kInUse while a file on the mount is open
  kForce,     // MNT_FORCE: open files lose their connection
  kDetach,    // MNT_DETACH: open files stay usable
};

// Unmounts what is mounted at `path`. After OK this mount is gone; with kDetach it lives on without
// a place until its last file is closed. kInvalidArgument if nothing is mounted there,
// kNotPermitted for users other than root. Does not follow a symbolic link at `path`.
Status Unmount(const std::string& path, UnmountMode mode);
// A Status with kInUse and a message that says what to do.
Status MountIsBusy(const std::string& path);

// Raises this process's limit of open files to the maximum; returns it.
Result<uint64_t> RaiseFileLimit();

}  // namespace siltfs
