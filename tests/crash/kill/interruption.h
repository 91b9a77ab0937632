// Turns SIGINT, SIGTERM and SIGHUP into a request that is polled at safe points.
#pragma once

namespace siltfs::killtest {

void CatchInterruption();
bool IsInterrupted();
// Throws Interrupted if there was a request.
void CheckInterruption();

// While this object exists, these signals are blocked in its thread, and in threads that it starts.
// The started threads keep them blocked, so that only the main thread gets them.
class InterruptionBlocked {
 public:
  InterruptionBlocked();
  ~InterruptionBlocked();
  InterruptionBlocked(const InterruptionBlocked&) = delete;
  InterruptionBlocked& operator=(const InterruptionBlocked&) = delete;
};

// Continues in a child process with its own process and mount namespaces. However the child ends,
// all its daemons and mounts end with it. The original process waits for the child and exits with
// its code. Without the rights for namespaces, continues in this process.
void Contain();

}  // namespace siltfs::killtest
