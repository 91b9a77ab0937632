// Child processes and other users, for tests of interactions between them.
#pragma once

#include <sys/types.h>

#include <functional>

namespace siltfs::testing {

inline constexpr uid_t kAlice = 12345;
inline constexpr uid_t kBob = 23456;
inline constexpr gid_t kUsers = 34567;

// A child process that exits with the result of its body (0 to 255); an exception exits with 255.
// The destructor kills it if it still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Returns its exit code; 1000 plus the signal if a signal ended it.
  int Wait();
  void Kill();  // kills it and waits
  // Waits until it sleeps in the kernel or has ended; returns whether it sleeps.
  bool BlocksInTheKernel() const;

 private:
  pid_t pid_;
};

// Runs the body in a child: `InChild([&] { return Outcome(unlink(path)); }) == EPERM`
int InChild(const std::function<int()>& body);

// The same as a user without superuser rights and with no other groups.
int As(uid_t uid, gid_t gid, const std::function<int()>& body);

// Lets one process wait until another one has reached a point.
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
