// The signals that ask a process to end.
//
// Thread-safety: from any thread.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace siltfs {

// SIGTERM, and those of SIGINT and SIGHUP that this process does not ignore. nohup(1) makes a
// program ignore SIGHUP, and a shell without job control makes its background programs ignore
// SIGINT. A blocked signal becomes pending even if it is ignored, so it must not be waited for.
inline sigset_t TerminationSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  for (const int signal : {SIGINT, SIGHUP}) {
    struct sigaction present = {};
    const bool ignored = sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
    if (!ignored) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace siltfs
