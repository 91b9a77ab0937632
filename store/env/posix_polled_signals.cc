#include <signal.h>

#include <atomic>

#include "store/env/polled_signals.h"
#include "store/env/posix_error.h"
#include "store/env/posix_signals.h"

namespace siltfs {
namespace {

sigset_t StatusSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}

bool TakePending(const sigset_t& set) {
  constexpr timespec kAtOnce = {};
  return sigtimedwait(&set, nullptr, &kAtOnce) > 0;
}

class PosixPolledSignals final : public PolledSignals {
 public:
  PosixPolledSignals(const sigset_t& termination, const sigset_t& before)
      : before_(before), termination_(termination) {}
  // Drops pending signals, which would end the process if they were delivered now.
  ~PosixPolledSignals() override {
    while (TakePending(termination_)) {
    }
    signal(SIGUSR1, SIG_IGN);  // also drops a pending SIGUSR1
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  bool TerminationRequested() override {
    if (!requested_ && TakePending(termination_)) requested_ = true;
    return requested_;
  }
  bool TakeStatusRequest() override { return TakePending(status_); }

 private:
  const sigset_t before_;
  const sigset_t termination_;
  const sigset_t status_ = StatusSignal();
  std::atomic<bool> requested_{false};
};

}  // namespace

Result<std::unique_ptr<PolledSignals>> PolledSignals::Block() {
  const sigset_t termination = TerminationSet();
  sigset_t set = termination;
  sigaddset(&set, SIGUSR1);
  sigset_t before;
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, &before); error != 0) {
    return PosixError("block signals", error);
  }
  return std::unique_ptr<PolledSignals>(new PosixPolledSignals(termination, before));
}

}  // namespace siltfs
