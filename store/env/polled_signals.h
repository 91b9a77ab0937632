// Signals that a long-running command polls for, instead of being interrupted by them.
//
// During the object's lifetime, SIGINT, SIGTERM, SIGHUP and SIGUSR1 are blocked in the thread that
// made it and, by inheritance, in threads started later. So make the object before all other
// threads, and destroy it on the same thread. The destructor drops pending signals; SIGUSR1 stays
// ignored from then on. SIGINT and SIGHUP have no effect if the process ignores them, as under
// nohup(1). Thread-safety: all calls from any thread.
#pragma once

#include <memory>

#include "store/base/result.h"

namespace siltfs {

class PolledSignals {
 public:
  static Result<std::unique_ptr<PolledSignals>> Block();
  virtual ~PolledSignals() = default;

  // Whether SIGINT, SIGTERM or SIGHUP has arrived; stays true from then on.
  virtual bool TerminationRequested() = 0;
  // Whether SIGUSR1 has arrived since the last call.
  virtual bool TakeStatusRequest() = 0;
};

}  // namespace siltfs
