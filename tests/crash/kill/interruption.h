// SIGINT, SIGTERM and SIGHUP as a request that is polled at safe points.
#pragma once

namespace siltfs::killtest {

void CatchInterruption();
bool IsInterrupted();
// Throws Interrupted.
void CheckInterruption();

// Blocks these signals in a thread while it exists, so that the main thread gets them.
class InterruptionBlocked {
 public:
  InterruptionBlocked();
  ~InterruptionBlocked();
  InterruptionBlocked(const InterruptionBlocked&) = delete;
  InterruptionBlocked& operator=(const InterruptionBlocked&) = delete;
};

// Continues in a child process with its own process and mount namespaces, so that any end of it
// ends all its daemons and mounts. The original process waits for the child and exits with its
// code. Without the rights for namespaces, continues in this process.
void Contain();

}  // namespace siltfs::killtest
