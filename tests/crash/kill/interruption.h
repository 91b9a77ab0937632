// SIGINT, SIGTERM and SIGHUP as a wish that is looked for in quiet moments.
#pragma once

namespace siltfs::killtest {

void CatchInterruption();
bool IsInterrupted();
// Throws Interrupted.
void CheckInterruption();

// For threads that leave it to the main thread: blocks these signals while it lives.
class InterruptionBlocked {
 public:
  InterruptionBlocked();
  ~InterruptionBlocked();
  InterruptionBlocked(const InterruptionBlocked&) = delete;
  InterruptionBlocked& operator=(const InterruptionBlocked&) = delete;
};

// Goes on in a process whose end, however it comes, ends all daemons and mounts that it made (by
// process and mount namespaces of its own). The process that was started waits for it and ends as
// it does. Where there are no rights to that, goes on as it is.
void Contain();

}  // namespace siltfs::killtest
