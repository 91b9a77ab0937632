// Starting programs and waiting for their end, whoever their parent was.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace siltfs::killtest {

struct Ended {
  int code = 0;  // 128 + the signal, if one ended it
  std::string output;
  std::string errors;
};

// From now on processes whose parent ended become this one's children, so that daemons can be
// waited for.
void AdoptOrphans();

// Not found is code 127. Output and errors, at most a few KiB of each, go by way of `scratch`.
Ended Run(const std::vector<std::string>& command, const std::string& scratch);
// Started and not waited for; its output is lost.
pid_t Start(const std::vector<std::string>& command);

// Waits for a child, own or adopted, and returns how it ended.
int WaitFor(pid_t child);
// Whether an adopted child still runs; it is not waited for.
bool IsRunning(pid_t child);
// Waits for the dead among all other children.
void ReapTheDead();

}  // namespace siltfs::killtest
