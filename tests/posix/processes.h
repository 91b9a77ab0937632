// Other processes, and other users, for tests of what one of them sees of another.
#pragma once

#include <sys/types.h>

#include <functional>

namespace siltfs::testing {

inline constexpr uid_t kAlice = 12345;
inline constexpr uid_t kBob = 23456;
inline constexpr gid_t kUsers = 34567;

// A child process that ends with what its body returns (0 to 255); an exception ends it with 255.
// It is killed if it still runs when this goes.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Its exit code; 1000 plus the signal if one ended it.
  int Wait();
  void Kill();  // and waits
  // Waits until it sleeps in the kernel or has ended; whether it sleeps.
  bool BlocksInTheKernel() const;

 private:
  pid_t pid_;
};

// Runs the body in a child: `InChild([&] { return Outcome(unlink(path)); }) == EPERM`
int InChild(const std::function<int()>& body);

// The same as somebody who is not the superuser and belongs to no other group.
int As(uid_t uid, gid_t gid, const std::function<int()>& body);

// One process waits until another has come this far.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Open();  // lets one Pass through
  void Pass();

 private:
  int ends_[2];
};

}  // namespace siltfs::testing
