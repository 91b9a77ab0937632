// The client's side of the control socket (protocol.h).
// Errors: kNotFound if no daemon has the store mounted (no socket, or one nobody listens on);
// otherwise what the daemon reports, or what went wrong on the way.
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs::control {

// Sends one command to the daemon of the store in this directory and returns its result.
Result<nlohmann::json> Ask(const std::string& store, const std::string& command);

// Someone who wants to know when a daemon has ended, and how.
class Waiter {
 public:
  // From its return on the daemon's end is not missed.
  static Result<Waiter> Register(const std::string& store);

  int64_t pid() const { return pid_; }

  // Returns when the daemon has closed its store and ended: OK if everything is durable. kAborted
  // if it died before.
  Status Wait();

 private:
  Waiter(std::unique_ptr<LocalStream> stream, int64_t pid)
      : stream_(std::move(stream)), pid_(pid) {}

  std::unique_ptr<LocalStream> stream_;
  int64_t pid_;
};

}  // namespace siltfs::control
