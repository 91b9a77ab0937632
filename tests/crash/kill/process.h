// Starts programs and waits for their end, also for orphans.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace siltfs::killtest {

struct Ended {
  int code = 0;  // 128 + the signal, if a signal ended it
  std::string output;
  std::string errors;
};

// From now on orphaned processes become children of this one, so that it can wait for daemons.
void AdoptOrphans();

// If the program is not found, the code is 127. Keeps only a few KiB of output and errors; their
// files are in `scratch`.
Ended Run(const std::vector<std::string>& command, const std::string& scratch);
// Starts the program without waiting; its output is discarded.
pid_t Start(const std::vector<std::string>& command);

// Waits for a child, own or adopted, and returns how it ended.
int WaitFor(pid_t child);
// Whether an adopted child still runs; does not wait for it.
bool IsRunning(pid_t child);
// Reaps all other children that have ended.
void ReapTheDead();

}  // namespace siltfs::killtest
