#include <signal.h>

#include <atomic>
#include <initializer_list>

#include "store/env/polled_signals.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr std::initializer_list<int> kTermination = {SIGINT, SIGTERM, SIGHUP};

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool TakePending(const sigset_t& set) {
  constexpr timespec kAtOnce = {};
  return sigtimedwait(&set, nullptr, &kAtOnce) > 0;
}

class PosixPolledSignals final : public PolledSignals {
 public:
  explicit PosixPolledSignals(const sigset_t& before) : before_(before) {}
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
  const sigset_t termination_ = SetOf(kTermination);
  const sigset_t status_ = SetOf({SIGUSR1});
  std::atomic<bool> requested_{false};
};

}  // namespace

Result<std::unique_ptr<PolledSignals>> PolledSignals::Block() {
  sigset_t set = SetOf(kTermination);
  sigaddset(&set, SIGUSR1);
  sigset_t before;
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, &before); error != 0) {
    return PosixError("block signals", error);
  }
  return std::unique_ptr<PolledSignals>(new PosixPolledSignals(before));
}

}  // namespace siltfs
