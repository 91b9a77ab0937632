#include "tests/posix/processes.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

namespace siltfs::testing {
namespace {

[[noreturn]] void RunAndExit(const std::function<int()>& body) {
  // A failing test must not leave waiting children behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 255;
  try {
    code = body();
  } catch (const std::exception&) {
  }
  _exit(code);
}

char StateOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? '?' : line.at(name_end + 2);
}

}  // namespace

ChildProcess::ChildProcess(const std::function<int()>& body) : pid_(fork()) {
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) RunAndExit(body);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) Kill();
}

int ChildProcess::Wait() {
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void ChildProcess::Kill() {
  kill(pid_, SIGKILL);
  Wait();
}

bool ChildProcess::BlocksInTheKernel() const {
  for (;;) {
    const char state = StateOf(pid_);
    if (state == 'S' || state == 'D') return true;
    if (state == 'Z' || state == '?') return false;
    sched_yield();
  }
}

int InChild(const std::function<int()>& body) { return ChildProcess(body).Wait(); }

int As(uid_t uid, gid_t gid, const std::function<int()>& body) {
  return InChild([&] {
    if (setgroups(0, nullptr) != 0 || setresgid(gid, gid, gid) != 0 ||
        setresuid(uid, uid, uid) != 0) {
      return 255;
    }
    return body();
  });
}

Gate::Gate() {
  if (pipe(ends_) != 0) throw std::runtime_error("pipe");
}

Gate::~Gate() {
  close(ends_[0]);
  close(ends_[1]);
}

void Gate::Open() {
  if (write(ends_[1], "x", 1) != 1) throw std::runtime_error("gate");
}

void Gate::Pass() {
  char byte = 0;
  if (read(ends_[0], &byte, 1) != 1) throw std::runtime_error("gate");
}

}  // namespace siltfs::testing
