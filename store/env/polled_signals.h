// Signals that a long-running command asks for now and then, instead of being interrupted by them.
//
// While one lives, SIGINT, SIGTERM, SIGHUP and SIGUSR1 are blocked in the thread that made it and,
// inherited, in those started since: make it before all other threads, and destroy it on the same
// thread. Those that came and were not asked for are forgotten then, and SIGUSR1 is ignored from
// then on. Thread-safety: the calls from any thread.
#pragma once

#include <memory>

#include "store/base/result.h"

namespace siltfs {

class PolledSignals {
 public:
  static Result<std::unique_ptr<PolledSignals>> Block();
  virtual ~PolledSignals() = default;

  // One of the first three has come; true ever after.
  virtual bool TerminationRequested() = 0;
  // SIGUSR1 has come since the last call.
  virtual bool TakeStatusRequest() = 0;
};

}  // namespace siltfs
