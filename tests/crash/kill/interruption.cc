#include "tests/crash/kill/interruption.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/process.h"

namespace siltfs::killtest {
namespace {

constexpr auto kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> interrupted = false;
std::atomic<pid_t> contained = 0;

void OnSignal(int) { interrupted = true; }

void PassOn(int signal) {
  if (contained > 0) kill(contained, signal);
}

void Handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

void Block(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  pthread_sigmask(how, &set, nullptr);
}

}  // namespace

void CatchInterruption() { Handle(OnSignal); }

bool IsInterrupted() { return interrupted; }

void CheckInterruption() {
  if (interrupted) throw Interrupted();
}

InterruptionBlocked::InterruptionBlocked() { Block(SIG_BLOCK); }
InterruptionBlocked::~InterruptionBlocked() { Block(SIG_UNBLOCK); }

void Contain() {
  if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return;
  // The call fails if the root of a chroot is not a mount point; this failure is ignored.
  (void)mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  Handle(PassOn);
  const pid_t child = fork();
  if (child < 0) throw SystemFailure("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  contained = child;
  _exit(WaitFor(child));
}

}  // namespace siltfs::killtest
