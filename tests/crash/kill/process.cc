#include "tests/crash/kill/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "store/env/posix_descriptor.h"
#include "tests/crash/kill/failure.h"

namespace siltfs::killtest {
namespace {

pid_t Spawn(const std::vector<std::string>& command, const std::string& output,
            const std::string& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), kWrite, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), kWrite, 0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) errno = error;
  if (error != 0) throw SystemFailure("start " + command[0]);
  return child;
}

std::string ReadText(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16384> text{};
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : 0;
  return {text.data(), static_cast<size_t>(size < 0 ? 0 : size)};
}

}  // namespace

void AdoptOrphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw SystemFailure("prctl");
}

int WaitFor(pid_t child) {
  int status = 0;
  if (RetryInterrupted([&] { return waitpid(child, &status, 0); }) < 0)
    throw SystemFailure("wait for a process");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool IsRunning(pid_t child) {
  siginfo_t info{};
  const int found = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return found == 0 && info.si_pid == 0;
}

void ReapTheDead() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

pid_t Start(const std::vector<std::string>& command) {
  return Spawn(command, "/dev/null", "/dev/null");
}

Ended Run(const std::vector<std::string>& command, const std::string& scratch) {
  const std::string output = scratch + "/output";
  const std::string errors = scratch + "/errors";
  Ended ended;
  ended.code = WaitFor(Spawn(command, output, errors));
  ended.output = ReadText(output);
  ended.errors = ReadText(errors);
  return ended;
}

}  // namespace siltfs::killtest
