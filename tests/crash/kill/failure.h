// Exceptions that end the test early.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace siltfs::killtest {

// An unexpected error. The program prints it and ends with exit code 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user asked the program to end (SIGINT, SIGTERM).
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Returns a Failure with the message "WHAT: " and the text of errno.
Failure SystemFailure(const std::string& what);

}  // namespace siltfs::killtest
