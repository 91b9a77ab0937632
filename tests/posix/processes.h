// Child processes and other users, for tests in which several processes or users interact.
#pragma once

#include <sys/types.h>

#include <functional>

namespace siltfs::testing {

inline constexpr uid_t kAlice = 12345;
inline constexpr uid_t kBob = 23456;
inline constexpr gid_t kUsers = 34567;

// A child process that runs its body and exits with the result (0 to 255). If the body throws an
// exception, the code is 255. The destructor kills the child if it still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for the child and returns its exit code. The code is 1000 plus the signal if a signal
  // ended it.
  int Wait();
  void Kill();  // kills it and waits
  // Waits until the child sleeps in the kernel or has ended; returns whether it sleeps.
  bool BlocksInTheKernel() const;

 private:
  pid_t pid_;
};

// Runs the body in a child and returns the child's exit code: `InChild([&] { return
// Outcome(unlink(path)); }) == EPERM`
int InChild(const std::function<int()>& body);

// Like InChild, but the child runs as this user, without superuser rights and without other groups.
int As(uid_t uid, gid_t gid, const std::function<int()>& body);

// Lets a process wait until another process has reached a point.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Open();  // lets one Pass return
  void Pass();

 private:
  int ends_[2];
};

}  // namespace siltfs::testing
