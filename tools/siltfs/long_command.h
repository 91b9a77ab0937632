// What commands share that may take longer than a second: progress, also when SIGUSR1 asks for it,
// and the interruption by SIGINT, SIGTERM or SIGHUP.
//
//   SILTFS_ASSIGN_OR_RETURN(const auto command, LongCommand::Begin(surroundings, {...}));
//   command->Observe(...);         // where the work is
//   command->OnInterruption(...);  // what ends the work, if it does not poll interrupted()
//   ... the work ...
//   command->End();  // before the result is printed
//   return Fail(surroundings, ExplainInterruption(status, "nothing has changed"));
//
// Thread-safety: one thread begins and ends it; any thread may call the other functions.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "fs/control/client.h"
#include "store/base/progress_meter.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/polled_signals.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/progress_display.h"

namespace siltfs {

class LongCommand {
 public:
  struct Options {
    std::string command;  // "gc"
    std::string subject;  // a path
    bool quiet = false;   // print only the lines that SIGUSR1 asks for
  };
  // Where the work is. Called on a thread of this class, some times a second. An empty step: it is
  // not known.
  using Look = std::function<WorkProgress()>;

  // Blocks the signals. So call it before any thread starts.
  static Result<std::unique_ptr<LongCommand>> Begin(Surroundings& surroundings, Options options);
  ~LongCommand() { End(); }
  LongCommand(const LongCommand&) = delete;
  LongCommand& operator=(const LongCommand&) = delete;

  bool interrupted() const { return interrupted_; }
  // kInterrupted after a signal.
  Status Check() const;
  // Replaces `look`. Returns when the previous one no longer runs; an empty one looks nowhere.
  void Observe(Look look) SILTFS_EXCLUDES(mutex_);
  // Replaces the action that a signal causes. The action is repeated, because what it ends may not
  // have begun. Returns when the previous one no longer runs; an empty one does nothing. No bar is
  // shown when the action is called first, so it may print, and end the process.
  void OnInterruption(std::function<void()> action) SILTFS_EXCLUDES(mutex_);
  // Keeps the progress away while the caller prints.
  void Print(const std::function<void()>& print) SILTFS_EXCLUDES(mutex_);
  // Waits for a daemon as long as it runs. If a signal interrupts that, and the daemon does not
  // answer within `patience`, `afterwards` ends the message (control::Patience).
  control::Patience WhileItRuns(std::string afterwards, std::chrono::milliseconds patience =
                                                            control::Patience().unwanted) const;
  // Removes the progress, and shows no more. Signals stay blocked until the object is destroyed.
  void End() SILTFS_EXCLUDES(mutex_);

 private:
  LongCommand(Surroundings& surroundings, Options options, std::unique_ptr<PolledSignals> signals);
  void Run() SILTFS_EXCLUDES(mutex_);
  void Show(bool asked) SILTFS_REQUIRES(mutex_);

  const std::unique_ptr<PolledSignals> signals_;
  std::atomic<bool> interrupted_{false};
  Mutex mutex_;  // held while `look_` and `action_` run
  CondVar changed_;
  ProgressDisplay display_ SILTFS_GUARDED_BY(mutex_);
  Look look_ SILTFS_GUARDED_BY(mutex_);
  std::function<void()> action_ SILTFS_GUARDED_BY(mutex_);
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Adds to an interruption what is true of the store afterwards, or what to do. Other errors, and an
// interruption that says so itself, stay as they are.
Status ExplainInterruption(Status status, std::string_view afterwards);

// Ends the process at once, with this exit code. For commands that have only read.
[[noreturn]] void EndProcess(ExitCode code);

// The literal for a step that another process has named; that process may be of another version.
std::string_view StepOf(std::string_view name);

// Asks the daemon how far it is, by a command whose answer has "step", "done" and "total" in the
// object `job`, or at its top if `job` is empty. Waits a second at most.
LongCommand::Look LookAtDaemon(control::DaemonAddress address, std::string command,
                               std::string job);

}  // namespace siltfs
