// Other programs that this process starts or becomes.
//
// Thread-safety: the functions from any thread; a StartedProgram by one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

// The absolute path of the program of this process, without symbolic links.
Result<std::string> PathOfOwnProgram();

// Replaces this process by another program, with these arguments after its name. Returns only if
// that fails. Signals that this thread blocks stay blocked.
Status BecomeProgram(const std::string& path, const std::vector<std::string>& arguments);

// The variables of this process, each as "NAME=VALUE".
std::vector<std::string> CurrentEnvironment();

// How a program has ended.
struct ProgramEnd {
  int exit_code = 0;  // if signal is 0
  int signal = 0;     // the signal that has ended it

  bool succeeded() const { return signal == 0 && exit_code == 0; }
};

// A child process. If the object is destroyed first, the program goes on, and init(8) or a
// subreaper takes it over when this process has ended.
class StartedProgram {
 public:
  struct Options {
    std::string path = {};  // without a slash: it is searched in PATH
    std::vector<std::string> arguments = {};
    std::vector<std::string> environment = {};  // each "NAME=VALUE"
  };
  // Starts the program in a session and process group of its own, in the directory "/". Its input
  // is empty, its output goes to standard error of this process, and it inherits no other
  // descriptor. No signal is blocked or ignored in it. The memory of this process is not copied.
  static Result<StartedProgram> Start(const Options& options);

  int64_t pid() const { return pid_; }
  // Waits this long at most. Empty if the program has not ended. Do not call it again after that.
  Result<std::optional<ProgramEnd>> Wait(std::chrono::milliseconds timeout);
  // Ends all processes of its group, with SIGKILL. Call it only before Wait has returned an end.
  void Kill();

 private:
  StartedProgram(std::string path, int64_t pid) : path_(std::move(path)), pid_(pid) {}

  std::string path_;
  int64_t pid_;
};

// The programs in a directory: regular files that can be executed, in the order of their names. As
// in run-parts(8), a name has only letters, digits, "-" and "_", so that "x.dpkg-old" and "x~" are
// left out without a message. `refused` has one sentence for each program that must not be run,
// because another user than root and this process's user can change it.
struct ProgramDirectory {
  std::vector<std::string> programs;  // absolute paths
  std::vector<std::string> refused;
};
// Without the directory the result is empty. Errors: other failures to read it; kNotPermitted if
// another user can change the directory itself.
Result<ProgramDirectory> FindPrograms(const std::string& directory);

}  // namespace siltfs
