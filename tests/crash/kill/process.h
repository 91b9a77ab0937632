// Starts programs and waits for their end. Also waits for orphaned processes.
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

// From now on, orphaned processes become children of this process, so that it can wait for daemons.
void AdoptOrphans();

// Runs the program to its end. The code is 127 if the program is not found. The result holds only
// the first few KiB of output and errors. The files `output` and `errors` in `scratch` hold all.
Ended Run(const std::vector<std::string>& command, const std::string& scratch);
// Starts the program and returns its pid without waiting for its end. Its output is discarded.
pid_t Start(const std::vector<std::string>& command);

// Waits for a child, own or adopted, and returns its exit code.
int WaitFor(pid_t child);
// Returns whether an adopted child still runs; does not wait for it.
bool IsRunning(pid_t child);
// Reaps all other children that have ended.
void ReapTheDead();

}  // namespace siltfs::killtest
