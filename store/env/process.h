// This process, its termination signals, and the state of other processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/file_owner.h"

namespace siltfs {

int64_t CurrentProcessId();
// The effective user id of this process; 0 is the superuser.
uint32_t CurrentUserId();
// The real user and group of this process.
FileOwner RealOwner();

// Opens placeholders for standard input, output and error if they are closed, so that no file or
// socket gets one of these numbers. Writing to a placeholder fails as before; reading finds the end
// of the file. Call it before anything else. Fails if no placeholder can be opened.
Status OccupyStandardDescriptors();

// Whether standard error is a terminal.
bool StandardErrorIsTerminal();
// Writes all of `text` to a descriptor that this process inherited. kInvalidArgument if the
// descriptor is not open; otherwise the error of write(2).
Status WriteToDescriptor(int descriptor, std::string_view text);

// The directory for temporary files that may be large: TMPDIR, or else /var/tmp.
std::string TemporaryDirectory();

// Prepares a process that keeps a store open; called once at its start. Raises the limit of open
// files to the maximum, because an index opens one file per component store. Sets up the heap so
// that it keeps freed buffers below 2 MiB and returns larger buffers to the system.
void PrepareForStore();

// From now on this thread gets only idle processor time and idle disk time. Call it only for work
// that no request waits for and that holds no lock that other threads need. Does nothing if the
// system refuses.
void RunWhenIdle();

// From now on SIGUSR1 does not end this process. Commands print their progress at this signal, so
// users send it to all processes of the program.
void IgnoreStatusRequests();

// Waits for SIGINT, SIGTERM and SIGHUP instead of being interrupted by them. SIGINT and SIGHUP stay
// ignored if the process ignores them (posix_signals.h). During the object's lifetime, these
// signals are blocked in the thread that made it and, by inheritance, in threads started later. So
// make the object before all other threads, and destroy it on the same thread.
// Thread-safety: Wait from one thread; Request and Cancel from any.
class TerminationSignals {
 public:
  static Result<std::unique_ptr<TerminationSignals>> Block();
  virtual ~TerminationSignals() = default;

  // Waits for a signal. Returns its number, or nullopt once Cancel was called.
  virtual std::optional<int> Wait() = 0;
  // Whether a signal has arrived that Wait has not returned.
  virtual bool Pending() = 0;
  // Sends SIGTERM to this process, so that Wait returns.
  virtual void Request() = 0;
  virtual void Cancel() = 0;
};

enum class ProcessState : uint8_t {
  kRunning,
  kStopped,  // by a signal (SIGSTOP, SIGTSTP) or a debugger
  kEnded,
  kUnknown,  // this process lacks the permission to see it
};

ProcessState StateOfProcess(int64_t pid);
// The program and the arguments with which the process was started; empty if unknown.
std::vector<std::string> ArgumentsOfProcess(int64_t pid);

// Returns when process `pid` has ended (at once if it does not exist), or after `timeout`.
void WaitForProcessEnd(int64_t pid, std::chrono::milliseconds timeout);

// The name of this machine, for messages to users of other machines; empty if it is not known.
std::string HostName();

}  // namespace siltfs
