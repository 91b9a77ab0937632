// What ends the test's work early.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace siltfs::killtest {

// Something went wrong that must not: said to the user, exit code 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user asked for the end (SIGINT, SIGTERM).
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// "WHAT: what errno means".
Failure SystemFailure(const std::string& what);

}  // namespace siltfs::killtest
