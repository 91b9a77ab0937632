// This process, the signals that ask it to end, and the end of others.
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
// The user whose rights this process has; 0 is the superuser.
uint32_t CurrentUserId();
// The user and the group that started this process, whatever rights it has.
FileOwner RealOwner();

// Gives the numbers of standard input, output and error to something where this process was started
// without them, so that no file or socket that it opens gets such a number. Writing there fails as
// before, and reading finds the end. To be called first of all. kIoError where nothing can be
// opened.
Status OccupyStandardDescriptors();

// Standard error is somebody's screen.
bool StandardErrorIsTerminal();
// Writes all of `text` to a descriptor that this process was started with. kInvalidArgument if
// there is none of that number, kIoError.
Status WriteToDescriptor(int descriptor, std::string_view text);

// For a process that keeps a store open, called once at its start: as many open files as the system
// lets it have (an index has one for every component store), and a heap that keeps buffers of up to
// 2 MiB for the next use and gives larger ones back to the system.
void PrepareForStore();

// From now on this thread gets only what processor time and transfers of the disk nobody else
// wants. For work that nobody waits for, and that holds no lock others wait for. Where the system
// does not let it, nothing happens.
void RunWhenIdle();

// SIGINT, SIGTERM and SIGHUP as something to wait for instead of something that interrupts. While
// one lives, they are blocked in the thread that made it and, inherited, in those started since:
// make it before all other threads, and destroy it on the same thread. Thread-safety: Wait from one
// thread; Request and Cancel from any.
class TerminationSignals {
 public:
  static Result<std::unique_ptr<TerminationSignals>> Block();
  virtual ~TerminationSignals() = default;

  // The number of the signal that came, or nothing once Cancel was called.
  virtual std::optional<int> Wait() = 0;
  // As if SIGTERM had come.
  virtual void Request() = 0;
  virtual void Cancel() = 0;
};

enum class ProcessState : uint8_t {
  kRunning,
  kStopped,  // by a signal (SIGSTOP, SIGTSTP) or a debugger
  kEnded,
  kUnknown,  // this process may not see it
};

ProcessState StateOfProcess(int64_t pid);
// The program and its arguments, as it was started; empty where that is not known.
std::vector<std::string> ArgumentsOfProcess(int64_t pid);

// Returns when process `pid` has ended, at once if there is none, or after `timeout`.
void WaitForProcessEnd(int64_t pid, std::chrono::milliseconds timeout);

}  // namespace siltfs
